"""`to_markdown` converts HTML to Markdown, for usual, hostile and malformed pages."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bradawl.tools.web.html import Tag, attributes_of, tokens
from bradawl.tools.web_fetch import to_markdown
from patience import cpu_limit

URL = "https://example.org/a/b.html"


async def markdown(html: str) -> str:
    return (await to_markdown(html, URL)).text


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<p>a<p>b", "a\n\nb"),
        ("a<br>b", "a\nb"),
        ("<p>  a \n\t b&nbsp;c  ", "a b c"),
        ("<h1>A</h1><h3> B\n<i>c</i></h3>", "# A\n\n### B *c*"),
        ("<h2>A <a class=headerlink href='#a'>¶</a></h2>", "## A"),
        ("<b>a <i>b</i></b> <strong> c </strong>d<em></em>", "**a *b*** **c** d"),
        ("<b>a<b>b</b>", "**ab**"),
        ("<b>a<i>b</b>c</i>", "**a*b***c"),
        ("<code>a`b</code> <kbd>c</kbd>", "`` a`b `` `c`"),
        ("<a href='../c?q=1 2&amp;r=(3)'>x</a>", "[x](https://example.org/c?q=1%202&r=%283%29)"),
        ("<a href='//other.example/y'>x</a>", "[x](https://other.example/y)"),
        ("<a href='#frag'>x</a> <a href='javascript:y()'>z</a> <a>w</a> <a href=/v></a>", "x z w"),
        ("<a href=/x>a<a href=/y>b</a>", "[a](https://example.org/x)[b](https://example.org/y)"),
        ("<a href='mailto:a@b.example'>m</a>", "[m](mailto:a@b.example)"),
        ("<a href=/card><h3>Card</h3><p>text</p></a>", "### [Card](https://example.org/card)\n\ntext"),
        ("<base href=https://cdn.example/z/><a href=q>x</a>", "[x](https://cdn.example/z/q)"),
        ("<img alt='a  b' src=i.png><img src=j.png>", "![a b](https://example.org/a/i.png)"),
        ("<img alt=x src=data:image/png;base64,AA>", "![x]"),
        ("<ul><li>a<li>b<ul><li>c</ul><li>d</ul>e", "- a\n- b\n  - c\n- d\n\ne"),
        ("<ul>\n<li>\n<p>a</p>\n<p>b</p>\n</li>\n<li>c</li>\n</ul>", "- a\n\n  b\n- c"),
        ("<ol start=3><li>a</li><li>b</li></ol>", "3. a\n4. b"),
        ("<li>a<li>b", "- a\n- b"),
        ("<ul><li><input type=checkbox checked> a<li><input type=checkbox> b</ul>", "- [x] a\n- [ ] b"),
        ("<blockquote>a<p>b</blockquote>c", "> a\n>\n> b\n\nc"),
        ("<dl><dt>a<dd>b<dd>c<dt>d<dd>e</dl>f", "a\n: b\n: c\n\nd\n: e\n\nf"),
        ("<hr>a", "---\n\na"),
        ("<pre>\n  a\n\n   <b>b</b> &lt;c&gt;\n</pre>", "```\n  a\n\n   b <c>\n```"),
        ("<pre><code class='language-js x'>a()<br>b()</code></pre>", "```js\na()\nb()\n```"),
        ("<div class='highlight-python no'><div class=highlight><pre><i></i>x</pre></div></div>", "```python\nx\n```"),
        ("<pre>```\na\n```</pre>", "````\n```\na\n```\n````"),
        ("<ul><li>a<pre>b\nc</pre></ul>", "- a\n\n  ```\n  b\n  c\n  ```"),
        ("<table><tr><th>a<th>b<tr><td>c|d<td>e<p>f</table>", "| a | b |\n| --- | --- |\n| c\\|d | e f |"),
        ("<table><caption>t</caption><tr><td>a<td>b<tr><td>c<td></table>", "t\n\n| a | b |\n| --- | --- |\n| c |  |"),
        ("<table><tr><td>a<tr><td>b</table>", "a\nb"),
        ("<table><tr><td><table><tr><td>a<td>b</table><td><h2>c</h2>d</table>", "a | b\n\n## c\n\nd"),
        ("<table><tr><td class=linenos><pre>1\n2</pre><td class=code><pre>a\nb</pre></table>", "```\na\nb\n```"),
        ("a<!-- b -->c<!doctype x>d<![CDATA[e]]>f<?php g ?>h<!-->i", "acdfhi"),
        ("a<script>if (a < b) '</p>'</script>b<style>p{}</style>c<noscript>d</noscript>", "abc"),
        ("<nav>a</nav><header>b</header>c<footer>d</footer><aside>e</aside>", "c"),
        ("<article><header>a</header>b<aside>note</aside></article>", "a\n\nb\n\nnote"),
        ("<p hidden>a</p><p aria-hidden=true>b</p><p style='color:red; display: none'>c</p>d", "d"),
        ("<p class=hidden-xs style='display:block'>a</p>", "a"),
        ("<nav>a<main>b", "b"),
        ("<nav>only", "only"),
        ("1 < 2 && 3 > 2 <3 </ >", "1 < 2 && 3 > 2 <3 </ >"),
        ("a<b", "a"),
        ('<p title="a>b">c<p title=\'"\'>d', "c\n\nd"),
        ('<a href=x title=5">e</a>', "[e](https://example.org/a/x)"),
        ("&lt;p&gt; &copy; &#x41; &bogus; &amp;lt;", "<p> © A &bogus; &lt;"),
        ("&#" + "9" * 9_000 + ";", "&#" + "9" * 9_000 + ";"),
        ("</ul></li></table></td></b></a></pre></main>x", "x"),
        ("", ""),
    ],
)
async def test_html_is_converted_to_markdown(html, expected):
    assert await markdown(html) == expected


async def test_only_the_main_part_of_a_page_is_kept():
    text = "word " * 100
    html = f"<title>T</title><div>cookies?</div><main><h1>H</h1>{text}</main><div>subscribe!</div>"
    page = await to_markdown(html, URL)
    assert page.title == "T"
    assert page.text == f"# H\n\n{text.strip()}"
    assert "cookies" in await markdown("<div>cookies?</div><main>little</main>")


async def test_the_title_is_the_first_one_and_not_that_of_an_image():
    html = "<svg><title>icon</title></svg><title> A &amp;\n B </title><title>C</title>"
    assert (await to_markdown(html, URL)).title == "A & B"


HOSTILE = {
    "nested": "<div>" * 100_000 + "x",
    "lists in lists": "<ul><li>a" * 50_000,
    "quotes in quotes": "<blockquote>a" * 50_000,
    "tables in tables": "<table><tr><td>a" * 50_000,
    "one row": "<table><tr>" + "<td>a" * 100_000,
    "short rows": "<table><tr>" + "<td>a" * 1_000 + "<tr><td>b" * 50_000,
    "bold": "<b>" * 100_000 + "x",
    "bold and not": "<b>x<i>y</b></i>" * 30_000,
    "ends": "</ul>" * 150_000,
    "less than": "<" * 300_000,
    "tags without end": "<a " * 200_000,
    "quotes without end": '<a b="' * 100_000 + "'",
    "comments": "<!--" * 150_000,
    "declarations": "<![CDATA[" * 60_000,
    "scripts": "<script>" * 60_000,
    "titles": "<title>" * 60_000,
    "attributes": "<p " + "a=b " * 150_000 + "hidden>x",
    "blanks": "<p" + " " * 500_000 + ">x" + " " * 500_000,
    "ticks": "<code>" + "`" * 300_000 + "</code>",
    "fences": "<pre>" + "```\n" * 100_000 + "</pre>",
    "references": "&#x" + "f" * 300_000 + ";" + "&amp" * 50_000,
    "hidden": "<p hidden>x" * 50_000,
    "pre": "<pre>" * 100_000 + "x",
    "classes": '<pre class="' + "language-" * 50_000 + '">x',
}


@pytest.mark.parametrize("name", HOSTILE)
async def test_hostile_pages_take_linear_time(name):
    with cpu_limit(8.0):
        text = await markdown(HOSTILE[name])
        # Each takes less than one second; quadratic time would take minutes.
    assert len(text) < 4_000_000


async def test_long_repeated_links_are_cut():
    html = f"<base href=https://example.com/{'x' * 1_900}/>" + "<p><a href=y>z</a>" * 5_000
    page = await to_markdown(html, URL)
    assert page.is_cut
    assert len(page.text) < 5_100_000


TAGS = (
    *("p", "ul", "li", "table", "tr", "td", "pre", "b", "a", "h2", "blockquote", "code", "nav", "main", "dd", "dt"),
    *("script", "title", "div"),
)
PIECES = st.sampled_from(
    (
        *(f"<{tag}>" for tag in TAGS),
        *(f"</{tag}>" for tag in TAGS),
        *("<a href=x>", "<br>", "<hr>", "<!--", "-->", "<td hidden>", "<img alt=q>"),
        *("<", ">", "&lt;", "'", '"', "text", " ", "\n", "|", "`"),
    )
)


@given(st.lists(PIECES, max_size=60))
async def test_any_sequence_of_tags_becomes_text(pieces):
    text = await markdown("".join(pieces))
    assert "\n\n\n" not in text or "<pre>" in pieces
    assert text == text.strip("\n")


@given(st.lists(PIECES | st.text(max_size=8), max_size=40))
def test_tokens_contain_no_more_text_than_the_page(pieces):
    html = "".join(pieces)
    size = sum(len(token) if isinstance(token, str) else len(token.raw) + len(token.name) for token in tokens(html))
    assert size <= len(html) + html.count("&") * 2


@given(st.text(alphabet="ab", min_size=1, max_size=4), st.text(alphabet="xy &<>'", max_size=8))
def test_attributes_are_read_as_they_were_written(name, value):
    (tag,) = (token for token in tokens(f'<p {name}="{value}" >') if isinstance(token, Tag))
    assert attributes_of(tag) == {name: value}
