"""What users say in their own language. The fact is the text between `«` and `»`."""

from typing import NamedTuple

from planted_statements import CONSTRAINTS, REQUESTS, TEXT_OF_USER


class Speech(NamedTuple):
    """Templates of one language."""

    requests: tuple[str, ...]
    constraints: tuple[str, ...]
    others: tuple[str, ...]


ENGLISH = Speech(REQUESTS, CONSTRAINTS, TEXT_OF_USER)
GERMAN = Speech(
    (
        "«Das {subject}-Formular soll leere Zeilen beim Import überspringen», bitte mit Test.",
        "Bau bitte «einen Schalter --{kebab} ein, der nur zählt». Mehr muss er nicht können.",
        "Kannst du herausfinden, «warum {function} bei {n3} Zeilen stehen bleibt»?",
        "Als Nächstes: «{pascal} soll ohne Netz starten können», mit den Daten vom letzten Mal.",
        "«{path} in zwei Module aufteilen», Lesen und Schreiben.",
        "Die Meldung versteht niemand, «schreib in {snake} dazu, welcher Datensatz gemeint ist».",
    ),
    (
        "«{pascal} wird von der Buchhaltung direkt gelesen», die Spalten dürfen sich nicht ändern.",
        "Wichtig: «Finger weg von {path}», daran arbeitet gerade ein anderes Team.",
        "«Keine neuen Pakete außer {library}», die Freigabe dauert sonst Wochen.",
        "Die Geräte draußen sind alt, «{snake} muss mit {n2} MB auskommen».",
        "«Beträge bleiben ganze Cent», auch in {camel}.",
        "Denk daran, dass «Port {port} schon vom {subject}-Dienst belegt ist».",
    ),
    ("Guten Morgen, weiter mit {kebab}.", "Danke, das sieht gut aus.", "Die Tests liegen in {test}.", "Es eilt nicht."),
)
SPANISH = Speech(
    (
        "«Quiero que {snake} reintente solo {n1} veces» y que luego avise por correo.",
        "Hay que «mover la limpieza de {subject}s a una tarea nocturna».",
        "Por favor, «añade a {kebab} una opción --seco», que solo muestre lo que haría.",
        "Averigua «por qué {function} tarda {n2} segundos en producción».",
        "Ahora «{method}() debe devolver también el total».",
        "Falta «una prueba que importe {snake}.csv dos veces».",
    ),
    (
        "«No modifiques los archivos de {otherpath}», los genera otra herramienta.",
        "Ojo: «los nombres de {pascal} los usan otros tres equipos».",
        "«Nada de dependencias nuevas, ni siquiera {library}».",
        "El cliente sigue con la versión vieja, así que «{snake} se acepta hasta el {date}».",
        "«Las fechas van siempre en UTC dentro de {kebab}».",
        "La base es compartida: «como mucho {n2} conexiones para {subject}».",
    ),
    ("Hola, seguimos con {kebab}.", "Mira primero {path}.", "Gracias, muy bien.", "No hay prisa con esto."),
)
FRENCH = Speech(
    (
        "Il faudrait que «{pascal} garde l'ordre d'arrivée des {subject}s» dans l'export.",
        "Peux-tu «ajouter une limite de {n3} lignes à {function}» ?",
        "«La page {subject} doit s'afficher sans JavaScript», au moins la liste.",
        "Ensuite, «remplacer {snake} par un appel à {method}» partout.",
        "Trouve «pourquoi {kebab} garde {n2} fichiers ouverts».",
        "On voudrait «un rapport hebdomadaire des {subject}s en retard».",
    ),
    (
        "Attention : «le champ {snake} reste facultatif», l'appli mobile ne l'envoie pas.",
        "«On ne touche pas à {path}» avant la mise en production.",
        "«Aucun secret dans les journaux de {kebab}», même en mode debug.",
        "Les machines sont figées, donc «pas plus récent que {library} {version}».",
        "«{method}() reste synchrone», elle est appelée depuis un signal.",
        "Le service comptable relit tout : «les montants de {subject} gardent trois décimales».",
    ),
    ("Bonjour, on reprend {kebab}.", "Le code est dans {path}.", "Merci !", "Rien d'urgent."),
)
SPEECHES = (ENGLISH,) * 17 + (GERMAN, SPANISH, FRENCH)
