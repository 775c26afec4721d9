# SPDX-License-Identifier: Apache-2.0
"""The diagnoses of the demo population: who gets them, how long they stay, how grave and dear they are."""

from __future__ import annotations

from typing import NamedTuple

AGE_ANCHORS = (0, 5, 15, 30, 45, 60, 75, 90)
SEASONS = ("none", "winter", "summer")


class Diagnosis(NamedTuple):
    """One code; `ages` is how common it is at the anchor ages, `female` and `male` multiply it.

    `stay` is the mean number of days, `severity` goes from 0 (none) to 4 (often fatal), `base` and `day` are
    the cost of a case and of each of its days.
    """

    code: str
    block: str
    ages: tuple[int, int, int, int, int, int, int, int]
    female: float
    male: float
    stay: float
    severity: int
    base: int
    day: int
    season: str = "none"
    first_age: int = 0
    last_age: int = 100


# chapter -> block -> what it is about
CHAPTERS: dict[str, dict[str, str]] = {
    "Infections": {"A00-A09": "intestinal", "A30-A49": "bacterial"},
    "Neoplasms": {
        "C15-C26": "digestive",
        "C30-C39": "chest",
        "C50-C50": "breast",
        "C60-C63": "male genital",
        "D10-D36": "benign",
    },
    "Metabolic": {"E10-E14": "diabetes", "E70-E90": "fluid balance"},
    "Mental": {"F10-F19": "substance use", "F20-F29": "psychosis", "F30-F39": "mood"},
    "Nervous system and eye": {"G40-G47": "episodic", "H25-H28": "lens"},
    "Circulatory": {
        "I10-I15": "hypertension",
        "I20-I25": "ischaemic heart",
        "I30-I52": "other heart",
        "I60-I69": "brain vessels",
    },
    "Respiratory": {
        "J09-J18": "influenza and pneumonia",
        "J20-J22": "acute lower airways",
        "J30-J39": "upper airways",
        "J40-J47": "chronic",
    },
    "Digestive": {
        "K35-K38": "appendix",
        "K40-K46": "hernia",
        "K55-K64": "bowel",
        "K80-K87": "gall and pancreas",
    },
    "Musculoskeletal": {"M15-M19": "arthrosis", "M50-M54": "back"},
    "Genitourinary": {"N17-N23": "kidney", "N30-N39": "urinary", "N40-N51": "male genital"},
    "Pregnancy and birth": {"O20-O29": "pregnancy", "O60-O75": "complications", "O80-O84": "delivery"},
    "Newborn": {"P05-P08": "preterm", "Z38-Z38": "liveborn"},
    "Symptoms": {"R00-R09": "chest", "R50-R69": "general"},
    "Injuries": {"S00-S09": "head", "S50-S59": "forearm", "S70-S79": "hip", "S80-S89": "lower leg"},
}

DIAGNOSES = (
    Diagnosis("A09", "A00-A09", (60, 40, 15, 12, 10, 12, 20, 30), 1.1, 1, 4, 1, 900, 320, "winter"),
    Diagnosis("A41", "A30-A49", (8, 2, 1, 2, 6, 16, 34, 50), 0.9, 1.1, 12, 4, 4200, 780),
    Diagnosis("C18", "C15-C26", (0, 0, 0, 2, 8, 24, 36, 26), 0.9, 1.1, 11, 3, 6200, 560),
    Diagnosis("C25", "C15-C26", (0, 0, 0, 1, 4, 12, 18, 12), 1, 1, 12, 4, 6400, 600),
    Diagnosis("C34", "C30-C39", (0, 0, 0, 1, 8, 34, 34, 12), 0.8, 1.2, 9, 4, 5200, 560),
    Diagnosis("C50", "C50-C50", (0, 0, 0, 6, 30, 36, 32, 18), 1.6, 0.01, 5, 2, 4800, 480, "none", 18),
    Diagnosis("C61", "C60-C63", (0, 0, 0, 0, 6, 50, 60, 26), 0, 1, 6, 2, 5600, 460, "none", 40),
    Diagnosis("D25", "D10-D36", (0, 0, 0, 16, 44, 8, 2, 0), 1, 0, 4, 0, 3200, 380, "none", 18, 80),
    Diagnosis("E10", "E10-E14", (2, 10, 12, 8, 6, 4, 2, 1), 1, 1, 6, 1, 1300, 330),
    Diagnosis("E11", "E10-E14", (0, 0, 0, 3, 14, 30, 36, 26), 0.9, 1.1, 8, 2, 1600, 340, "none", 12),
    Diagnosis("E86", "E70-E90", (8, 4, 1, 1, 2, 6, 22, 56), 1.2, 0.9, 6, 2, 1000, 320),
    Diagnosis("F10", "F10-F19", (0, 0, 14, 34, 52, 40, 10, 2), 0.5, 1.5, 8, 1, 900, 290, "none", 12),
    Diagnosis("F20", "F20-F29", (0, 0, 4, 18, 14, 8, 3, 1), 0.9, 1.1, 26, 1, 1200, 280, "none", 14),
    Diagnosis("F32", "F30-F39", (0, 0, 22, 24, 28, 22, 14, 8), 1.4, 0.8, 24, 1, 1200, 270, "winter", 10),
    Diagnosis("G40", "G40-G47", (12, 16, 10, 8, 9, 11, 12, 10), 0.9, 1.1, 5, 1, 1500, 390),
    Diagnosis("G45", "G40-G47", (0, 0, 0, 1, 6, 18, 32, 28), 1, 1, 5, 2, 1900, 420, "none", 18),
    Diagnosis("H25", "H25-H28", (0, 0, 0, 0, 2, 12, 36, 18), 1.2, 0.9, 1, 0, 1500, 250, "none", 30),
    Diagnosis("I10", "I10-I15", (0, 0, 0, 3, 12, 22, 30, 24), 1.3, 0.8, 4, 1, 1100, 310, "none", 15),
    Diagnosis("I20", "I20-I25", (0, 0, 0, 1, 12, 36, 36, 18), 0.7, 1.3, 4, 2, 2900, 450, "none", 18),
    Diagnosis("I21", "I20-I25", (0, 0, 0, 2, 20, 42, 44, 36), 0.6, 1.4, 7, 3, 5200, 680, "winter", 18),
    Diagnosis("I48", "I30-I52", (0, 0, 0, 1, 8, 28, 50, 42), 1, 1, 5, 2, 2600, 400, "none", 18),
    Diagnosis("I50", "I30-I52", (1, 0, 0, 1, 6, 30, 84, 140), 1.05, 1, 11, 3, 2500, 400, "winter"),
    Diagnosis("I63", "I60-I69", (0, 0, 0, 2, 8, 28, 56, 66), 1, 1, 13, 4, 4400, 560, "none", 18),
    Diagnosis("J10", "J09-J18", (24, 16, 4, 4, 5, 8, 16, 24), 1, 1, 5, 2, 1400, 360, "winter"),
    Diagnosis("J18", "J09-J18", (30, 18, 4, 5, 8, 20, 46, 80), 0.9, 1.1, 9, 3, 2300, 430, "winter"),
    Diagnosis("J20", "J20-J22", (80, 20, 3, 3, 4, 8, 14, 20), 0.9, 1.1, 4, 1, 1200, 330, "winter"),
    Diagnosis("J35", "J30-J39", (4, 70, 20, 8, 1, 0, 0, 0), 1, 1, 3, 0, 1900, 330),
    Diagnosis("J44", "J40-J47", (0, 0, 0, 1, 10, 40, 46, 26), 0.9, 1.1, 9, 3, 2100, 380, "winter", 25),
    Diagnosis("K35", "K35-K38", (2, 24, 44, 20, 12, 8, 5, 3), 0.9, 1.1, 4, 0, 2900, 420),
    Diagnosis("K40", "K40-K46", (12, 6, 3, 8, 18, 30, 24, 8), 0.2, 1.7, 2, 0, 2300, 350),
    Diagnosis("K57", "K55-K64", (0, 0, 0, 3, 16, 28, 30, 22), 1.1, 0.9, 7, 1, 2600, 390, "none", 18),
    Diagnosis("K80", "K80-K87", (0, 0, 3, 20, 30, 34, 32, 22), 1.4, 0.8, 5, 1, 3000, 400, "none", 8),
    Diagnosis("M16", "M15-M19", (0, 0, 0, 1, 10, 44, 56, 16), 1.2, 0.9, 9, 1, 7400, 380, "none", 18),
    Diagnosis("M54", "M50-M54", (0, 0, 6, 18, 34, 34, 26, 18), 1.1, 0.9, 6, 0, 1400, 300, "none", 8),
    Diagnosis("N20", "N17-N23", (0, 1, 3, 20, 28, 24, 14, 6), 0.6, 1.4, 3, 0, 2100, 370, "summer"),
    Diagnosis("N39", "N30-N39", (14, 8, 5, 8, 8, 12, 26, 50), 1.4, 0.7, 6, 1, 1200, 310),
    Diagnosis("N40", "N40-N51", (0, 0, 0, 0, 6, 44, 62, 30), 0, 1, 5, 1, 3000, 370, "none", 40),
    Diagnosis("O21", "O20-O29", (0, 0, 20, 30, 6, 0, 0, 0), 1, 0, 3, 0, 800, 290, "none", 15, 50),
    Diagnosis("O42", "O60-O75", (0, 0, 40, 130, 20, 0, 0, 0), 1, 0, 4, 1, 2200, 380, "none", 15, 50),
    Diagnosis("O80", "O80-O84", (0, 0, 150, 560, 40, 0, 0, 0), 1, 0, 3, 0, 1600, 300, "none", 15, 50),
    Diagnosis("O82", "O80-O84", (0, 0, 40, 210, 40, 0, 0, 0), 1, 0, 5, 0, 3100, 360, "none", 15, 50),
    Diagnosis("P07", "P05-P08", (120, 0, 0, 0, 0, 0, 0, 0), 1, 1.1, 26, 2, 9000, 720, "none", 0, 0),
    Diagnosis("R07", "R00-R09", (1, 2, 10, 18, 26, 26, 20, 12), 0.9, 1.1, 2, 0, 900, 310),
    Diagnosis("R55", "R50-R69", (2, 6, 18, 10, 10, 14, 28, 40), 1.1, 0.9, 3, 1, 1000, 300),
    Diagnosis("S06", "S00-S09", (60, 60, 34, 24, 18, 18, 26, 44), 0.8, 1.2, 3, 1, 1200, 380, "summer"),
    Diagnosis("S52", "S50-S59", (4, 50, 24, 12, 14, 18, 22, 22), 1, 1, 3, 0, 2900, 350, "summer"),
    Diagnosis("S72", "S70-S79", (1, 2, 2, 2, 3, 10, 40, 120), 1.5, 0.7, 15, 3, 6800, 430),
    Diagnosis("S82", "S80-S89", (1, 10, 22, 24, 22, 20, 14, 10), 0.9, 1.1, 6, 0, 4200, 380, "summer"),
    Diagnosis("Z38", "Z38-Z38", (1500, 0, 0, 0, 0, 0, 0, 0), 1, 1, 3, 0, 900, 220, "none", 0, 0),
)
