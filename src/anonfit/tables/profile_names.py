# SPDX-License-Identifier: Apache-2.0
"""What a column's name says about it, in English, German, French and Spanish. Asked by `profile_roles`."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NameMeaning:
    """What a name points to: the role that goes with it, and the words and stems that give it away."""

    says: str
    role: str
    words: frozenset[str]
    stems: tuple[str, ...] = ()
    codes: bool = False  # numbers in such a column are names of categories, not quantities

    def fits(self, words: tuple[str, ...]) -> bool:
        """Whether one of the words is, or holds, one of this meaning's."""
        return any(word in self.words or any(stem in word for stem in self.stems) for word in words)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _meaning(says: str, role: str, *, words: str, stems: str = "", codes: bool = False) -> NameMeaning:
    return NameMeaning(says, role, _words(words), tuple(stems.split()), codes)


_LINK, _SECRET, _DIRECT = "quasi-identifier", "sensitive", "identifier"

# In order of precedence: the first that fits is taken, so 'age_at_diagnosis' is an age.
_MEANINGS = (
    _meaning(
        "a person's name",
        _DIRECT,
        words="surname firstname lastname forename fullname givenname familyname middlename rufname "
        "maiden prenom apellido apellidos patronyme initials",
        stems="vorname nachname familienname geburtsname apellido prenom",
    ),
    _meaning(
        "free text",
        _DIRECT,
        words="note notes comment comments remark remarks memo text narrative description free freetext hinweis "
        "remarque remarques nota notas",
        stems="bemerkung kommentar notiz freitext beschreibung anmerkung commentaire observacion comentario anamnes",
    ),
    _meaning("an e-mail address", _DIRECT, words="mail courriel correo", stems="email"),
    _meaning(
        "a telephone number",
        _DIRECT,
        words="tel handy mobile fax movil portable cellphone",
        stems="phone telefon telephon",
    ),
    _meaning(
        "a street address",
        _DIRECT,
        words="street rue calle direccion domicilio housenumber",
        stems="address adresse strasse anschrift hausnummer",
    ),
    _meaning(
        "an official number",
        _DIRECT,
        words="ssn nss nir dni nie nif svnr kvnr mrn nhs niss passport passeport pasaporte license "
        "licence vin taxid kennzeichen",
        stems="sozialversicher versichert versicherungsn steuernummer ausweis passnummer fuhrerschein "
        "fuehrerschein aktenzeichen patientennummer fallnummer",
    ),
    _meaning(
        "an account",
        _DIRECT,
        words="iban bic konto account creditcard cuenta",
        stems="kontonummer kontonr kreditkarte",
    ),
    _meaning(
        "an address on a network",
        _DIRECT,
        words="ip mac imei imsi username login url website cookie",
        stems="benutzername ipaddr deviceid",
    ),
    _meaning(
        "a picture or signature",
        _DIRECT,
        words="photo foto picture signature fingerprint",
        stems="unterschrift lichtbild",
    ),
    _meaning(
        "a birth",
        _LINK,
        words="dob yob geb gebdat naissance nacimiento jahrgang",
        stems="geburt birth naissance nacimiento",
    ),
    _meaning("an age", _LINK, words="age ages alter edad agegroup altersjahre", stems="altersgr lebensalter"),
    _meaning(
        "an illness",
        _SECRET,
        words="icd illness condition symptom symptoms hiv cancer krebs disorder allergy injury dx drg "
        "pathology finding sida",
        stems="diagnos krankheit disease maladie enfermedad morbid befund erkrankung",
    ),
    _meaning(
        "a treatment",
        _SECRET,
        words="drug drugs treatment procedure surgery ops atc dose dosis prescription vaccine vaccination "
        "impfung operation",
        stems="therap behandlung traitement tratamiento medica medika arznei",
    ),
    _meaning(
        "a medical measurement",
        _SECRET,
        words="lab blood blut sang sangre glucose hba cholesterol creatinine bloodpressure systolic diastolic",
        stems="laborwert blutdruck glucos blutzucker",
    ),
    _meaning(
        "a health condition or habit",
        _SECRET,
        words="smoker smoking smokes raucher fumeur fumador alcohol alkohol alcool disability disabled "
        "handicap pregnant pregnancy mental addiction abuse embarazo",
        stems="behinder schwanger discapacidad",
    ),
    _meaning(
        "money",
        _SECRET,
        words="salary income wage wages lohn pay payment salaire revenu revenus salario sueldo renta "
        "ingresos earnings debt schulden credit loan kredit balance cost costs charge charges cout "
        "couts costo costos coste costes price preis prix precio amount betrag montant importe bill "
        "expenditure bonus tax steuer wealth capital",
        stems="einkommen gehalt kosten salary income",
    ),
    _meaning(
        "a belief or orientation",
        _SECRET,
        words="religion konfession confession faith orientation sexuality political politics party partei "
        "union gewerkschaft syndicat sindicato religiosity",
        stems="religio",
        codes=True,
    ),
    _meaning(
        "an offence",
        _SECRET,
        words="crime crimes offense offence conviction arrest sentence delito delit verdict",
        stems="straftat verurteil",
    ),
    _meaning("a grade", _SECRET, words="grade grades gpa marks schulnote zensur calificacion"),
    _meaning(
        "something to predict",
        "target",
        words="outcome target label class klasse y response readmitted readmission survived survival "
        "mortality churn ergebnis resultat resultado cible objetivo",
        stems="zielvar zielgr",
    ),
    _meaning("a sex or gender", _LINK, words="sex gender sexe sexo genero genre", stems="geschlecht", codes=True),
    _meaning(
        "a postal code",
        _LINK,
        words="plz zip postal cp zcta postnr",
        stems="postleit zipcode postcode postalcode codepostal",
        codes=True,
    ),
    _meaning(
        "a country or origin",
        _LINK,
        words="country nation citizenship pays pais land origin migration citizen",
        stems="nationalit nacionalidad staatsang herkunft migrationsh geburtsland",
        codes=True,
    ),
    _meaning(
        "a place",
        _LINK,
        words="city town ort stadt ville ciudad commune municipality municipio county kreis district "
        "distrito region state province provincia departement borough canton kanton quartier barrio "
        "village dorf location lat lon lng latitude longitude geo coordinates place lieu lugar "
        "tract area",
        stems="wohnort gemeinde landkreis bundesland",
    ),
    _meaning("an ethnic group", _LINK, words="race raza etnia ethnie", stems="ethnic", codes=True),
    _meaning(
        "a family or household",
        _LINK,
        words="marital marriage married civil spouse relationship household haushalt menage hogar "
        "children kinder enfants hijos dependents family familie famille familia",
        stems="familienstand",
    ),
    _meaning(
        "an education",
        _LINK,
        words="school schule ecole escuela degree estudios diplome qualification",
        stems="educa bildung abschluss",
    ),
    _meaning(
        "an occupation",
        _LINK,
        words="profession job employer employment industry branche metier ocupacion profesion workclass "
        "title titel position company firma",
        stems="beruf occupation arbeitgeber",
    ),
    _meaning("a language", _LINK, words="langue idioma lengua", stems="language sprache", codes=True),
    _meaning(
        "the body",
        _LINK,
        words="height weight bmi gewicht groesse grosse poids peso taille talla estatura eye hair",
        stems="korpergr koerpergr",
    ),
    _meaning(
        "a stay or duration",
        _LINK,
        words="los stay duration dauer duree estancia duracion tenure",
        stems="verweildauer liegedauer",
    ),
    _meaning(
        "an event",
        _LINK,
        words="admission discharge visit visits arrival departure alta sortie ingreso hospital clinic "
        "klinik ward station date datum fecha day tag jour dia time zeit year jahr annee ano month "
        "monat mois mes death tod deces muerte",
        stems="aufnahme entlass besuch sterbe hospitali datum",
    ),
)

_PERSON_NAME = _words("name names nom nombre namen nombres")
_OTHER_PERSONS = _words(
    "doctor physician arzt arztin aerztin hausarzt nurse pfleger pflegerin betreuer betreuerin berater advisor teacher "
    "lehrer manager supervisor vorgesetzter sachbearbeiter ansprechpartner contact kontakt guardian vormund medecin "
    "medico profesor spouse partner mother father mutter vater author autor interviewer"
)
_PERSONS = _words(
    "patient patients patienten pat paciente pacientes person persons pers personen personne "
    "personnes persona personas people customer customers kunde kunden client cliente member mitglied "
    "subject proband participant participants teilnehmer employee mitarbeiter student user benutzer "
    "resident voter insured individual individuals"
)
_NAME_COMPANIONS = _PERSONS | _words("first last family full given middle famille contact")
_RECORD = _words(
    "id ids uid uuid guid pid key nr no num number nummer numero identifier identifiant identificador "
    "kennung index rowid lfd record pseudonym token hash"
)
_JOINED_ID = re.compile(r"^(pat|patient|person|personen|user|customer|kunden|client|member|subject|pers)(id|nr|no)$")
_HOW_MANY = _words("count anzahl n freq frequency effectif")
_PLURAL_PERSONS = _words("persons people personen personnes personas patients patienten pacientes individuals")
_WEIGHT = _words("weight weights wt gewicht poids peso factor faktor")
_SAMPLE = _words("sample sampling survey person final stichprobe sondage muestra design analysis expansion case")
_SAMPLE_WEIGHT = _words("fnlwgt wgt pweight pwgtp perwt finalwt weighting gewichtung ponderation")


def words_of(name: str) -> tuple[str, ...]:
    """The words of a column name in lower case without accents: 'GeburtsDatum_2' gives geburts, datum."""
    plain = unicodedata.normalize("NFKD", name.replace("ß", "ss"))
    plain = "".join(letter for letter in plain if not unicodedata.combining(letter))
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", plain)
    return tuple(re.findall(r"[^\W\d_]+", spaced.lower()))


def meaning_of(name: str) -> NameMeaning | None:
    """What the name points to, or None where it says nothing we know."""
    words = words_of(name)
    if _PERSON_NAME & set(words) and set(words) <= _PERSON_NAME | _NAME_COMPANIONS:
        return _MEANINGS[0]
    if words and set(words) <= _OTHER_PERSONS | _PERSON_NAME:
        return _MEANINGS[0]
    return next((meaning for meaning in _MEANINGS if meaning.fits(words)), None)


def is_record_id(name: str) -> bool:
    """Whether the name is that of a number or key: of persons, but also of rows, wards or products."""
    words = words_of(name)
    return bool(_RECORD & set(words)) or any(_JOINED_ID.match(word) for word in words)


def is_person_id(name: str) -> bool:
    """Whether the name is that of a number or key of persons."""
    words = words_of(name)
    if any(_JOINED_ID.match(word) for word in words):
        return True
    return bool(_RECORD & set(words)) and set(words) <= _RECORD | _PERSONS


def counts_persons(name: str) -> bool:
    """Whether the name says how many persons a row stands for; a plain 'count' does not say of what."""
    words = set(words_of(name))
    return bool(words & _HOW_MANY) and bool(words & _PLURAL_PERSONS)


def counts_something(name: str) -> bool:
    """Whether the name says how many, of persons or of anything else."""
    return bool(_HOW_MANY & set(words_of(name)))


def is_sample_weight(name: str) -> bool:
    """Whether the name is that of a survey weight; a plain 'weight' may be that of a body."""
    words = set(words_of(name))
    return bool(words & _SAMPLE_WEIGHT) or (bool(words & _WEIGHT) and bool(words & _SAMPLE))


_MEASURED = _words(
    "age alter years year jahre month day days hours stunden weeks score grade note level stufe stage size rooms cars "
    "children kinder kids siblings persons visits times rank"
)


def measures_something(name: str) -> bool:
    """Whether a name says that whole numbers count or measure something, few as they may be."""
    return bool(_MEASURED & set(words_of(name)))
