"""How a question of the live terminal lays out its answers."""

from bradawl.app.symbols import UNICODE
from bradawl.app.tui.live.dialogs import Key, KeyDialog
from bradawl.app.tui.render.theme import theme_named

THEME = theme_named("dark", "none", UNICODE)


async def test_an_answer_of_several_rows_shares_none_of_them():
    """Defect: the next answer began at the end of its last row."""
    long = "Keep the old format and convert each file when it is read for the first time"
    keys = [Key("1", "Red", "1"), Key("2", "Blue", "2"), Key("3", long, "3"), Key("4", "Green", "4"), Key("o", "b", "")]
    rows = KeyDialog("Which?", lambda *_: ["x"], "", keys).lines(THEME, 60, 24)[3:]
    assert [" ".join(row.split()) for row in rows] == [
        "\u276f 1 Red 2 Blue",
        "3 Keep the old format and convert each file when it is",
        "read for the first time",
        "4 Green o b",
    ]
