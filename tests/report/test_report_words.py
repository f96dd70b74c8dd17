import pytest

from refadv_ablate.report.loading.published import dataset_key, find, model_key, rows
from refadv_ablate.report.pages.words import changes, descriptors
from refadv_ablate.report.tables.latex import escape
from refadv_ablate.statistics.formatting import because, p_holm, points, share, with_interval
from refadv_ablate.types import Delta, Estimate
from tests.report.making import estimate


@pytest.mark.parametrize(
    ("fraction", "signed", "text"),
    [
        (0.583, False, "58.3"),
        (-0.168, True, "−16.8"),
        (0.021, True, "+2.1"),
        (-0.0001, True, "0.0"),
        (1.0, False, "100.0"),
    ],
)
def test_points_have_a_true_minus_and_no_signed_zero(fraction, signed, text):
    assert points(fraction, signed=signed) == text


def test_an_estimate_shows_its_interval_or_why_there_is_none():
    assert with_interval(estimate(-0.168, 0.042), signed=True) == "−16.8 [−21.0, −12.6]"
    assert with_interval(estimate(0.0, None, "one image: no interval")) == "0.0 [n/a] (one image)"
    assert with_interval(Estimate(None, None, None, 0, 0, note="no examples")) == "n/a (no examples)"
    assert because("n/a", "") == "n/a"


def test_a_raw_p_says_that_it_is_raw_and_tiny_ones_are_bounded():
    e = estimate(0.1)
    assert p_holm(Delta("acc50", e, e, e, p=0.02, p_holm=0.04)) == "0.040"
    assert p_holm(Delta("acc50", e, e, e, p=0.0001)) == "<0.001 raw"
    assert p_holm(Delta("acc50", e, e, e)) == "n/a"


def test_coverage_is_100_percent_only_where_nothing_is_missing():
    assert (share(100, 100), share(9999, 10000), share(0, 0)) == ("100%", ">99%", "n/a")


def test_moved_words_are_told_from_lost_and_new_ones():
    assert changes("a red ball", "ball a red")[1] == [("moved", "ball"), ("same", "a red")]
    before, after = changes("the big red ball", "the ball")
    assert before == [("same", "the"), ("gone", "big red"), ("same", "ball")]
    assert after == [("same", "the ball")]
    assert changes("a dog", "the one") == ([("gone", "a dog")], [("new", "the one")])
    assert changes("", "") == ([], [])


@pytest.mark.parametrize("original", ["a b a c", "the the the", "x"])
def test_no_word_is_lost_in_the_comparison(original):
    before, after = changes(original, "c a the b")
    assert " ".join(text for _, text in before) == original
    assert " ".join(text for _, text in after) == "c a the b"


def test_spellings_of_one_model_and_one_data_set_meet():
    assert model_key("OpenGVLab/InternVL3-14B-hf") == model_key("InternVL-3-14B")
    assert model_key("Qwen/Qwen2.5-VL-72B-Instruct") == model_key("qwen2_5_vl-72b")
    assert model_key("Qwen3-VL-8B-Thinking") != model_key("Qwen3-VL-8B-Instruct")
    names = [
        "refcoco_val_unc",
        "RefCOCO+",
        "refcoco_plus_testA_unc",
        "refcocog_val_umd",
        "Ref-Adv",
        "ref_adv_s",
        "shapes",
    ]
    assert [dataset_key(name) for name in names] == [
        "refcoco",
        "refcoco_plus",
        "refcoco_plus",
        "refcocog",
        "ref_adv",
        "ref_adv_s",
        "shapes",
    ]


def test_every_published_row_is_found_by_its_own_name():
    for table in ("table6", "table7"):
        for row in rows(table):
            name = f"{row['family']}-{row['model']}" if "family" in row else row["model"]
            assert find(table, (name,), cot=row["cot"]) == row


def test_the_shipped_numbers_are_the_published_ones(shared):
    from refadv_ablate.report.loading.published import TABLES

    for table, name in TABLES.items():
        lines = (shared / "paper" / name).read_text(encoding="utf-8").strip().splitlines()
        assert [",".join(row.values()) for row in rows(table)] == lines[1:]


def test_latex_escapes_what_would_be_a_command_and_spells_what_it_cannot_set():
    assert escape(r"50% & $x_1 {a} #2 ~^\b") == (
        r"50\% \& \$x\_1 \{a\} \#2 \textasciitilde{}\textasciicircum{}\textbackslash{}b"
    )
    assert escape("−1.0 → “é”") == r"$-$1.0 $\rightarrow$ ``é''"
    assert escape("🐕") == r"\texttt{U+1F415}"


def test_an_original_shows_its_descriptors_and_the_deleted_one():
    trace = {"spans": [[[4, 8]], [[13, 25]], [[27, 44]]], "chosen": 1}
    assert descriptors("the tall man in a red hat, not holding a cup", trace) == [
        ("same", "the"),
        ("told", "tall"),
        ("same", "man"),
        ("gone", "in a red hat,"),
        ("told", "not holding a cup"),
    ]
    assert descriptors("the man", {"order": [1, 0]}) == []
    assert descriptors("the man", {"spans": [], "chosen": 4}) == []
