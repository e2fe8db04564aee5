"""Contamination: leaks in every shape are found, clean files are not, and what was not read is said."""

import json
import os
import pickle
from pathlib import Path

import numpy as np
import pytest

from cli.main import main
from stepwell.ptb.contamination import Check, UnreadableBenchmark, Verdict, benchmark_of, check_folder, load_benchmark
from stepwell.ptb.contamination.embedding import Embeddings, NoEmbedder, SentenceEmbedder, minilm_folder
from stepwell.ptb.contamination.paraphrases import ParaphraseSearch
from tests.ptb_leaks import LEAKS, Leak, chat, made_up_rows, other_numbers, plant

ROWS = made_up_rows(12, seed=1)
CLEAN = made_up_rows(60, seed=2)
BENCHMARK = benchmark_of(ROWS)
BY_WORDS = [leak for leak in LEAKS if not leak.by_meaning]


def lines(folder: Path, rows: list[object], name: str = "train.jsonl") -> Path:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


@pytest.mark.parametrize("leak", BY_WORDS, ids=lambda leak: leak.name)
def test_each_planted_row_is_found_and_no_clean_one(tmp_path: Path, leak: Leak) -> None:
    plant(tmp_path / "work", leak, ROWS, CLEAN)
    report = check_folder(tmp_path / "work", BENCHMARK)
    assert {found.item for found in report.leaks} == {str(number) for number in range(12)}
    assert {found.path for found in report.leaks if found.path == "clean.jsonl"} == set()
    assert report.verdict is Verdict.CONTAMINATED


def test_other_numbers_are_told_apart_from_the_same(tmp_path: Path) -> None:
    rows = [{"text": ROWS[0]["question"]}, {"text": other_numbers(ROWS[1]["question"])}]
    report = check_folder(lines(tmp_path, rows), BENCHMARK)
    assert [(leak.row, leak.item, leak.kind) for leak in report.leaks] == [
        (0, "0", "verbatim"),
        (1, "1", "numbers changed"),
    ]


@pytest.mark.parametrize(
    ("count", "verdict"),
    [(0, Verdict.CLEAN), (1, Verdict.TOLERATED), (3, Verdict.TOLERATED), (4, Verdict.CONTAMINATED)],
)
def test_three_rows_are_tolerated_and_a_fourth_is_not(tmp_path: Path, count: int, verdict: Verdict) -> None:
    rows = [chat(row["question"], row["answer"]) for row in (*ROWS[:count], *CLEAN)]
    report = check_folder(lines(tmp_path, rows), BENCHMARK)
    assert (report.verdict, report.passed, len(report.leaks)) == (verdict, verdict is not Verdict.CONTAMINATED, count)


def test_one_text_with_many_rows_counts_each(tmp_path: Path) -> None:
    (tmp_path / "all.txt").write_text("\n".join(row["question"] for row in ROWS[:5]))
    assert len(check_folder(tmp_path, BENCHMARK).leaks) == 5


def test_a_question_told_in_three_fields_is_found(tmp_path: Path) -> None:
    words = ROWS[0]["question"].split()
    row = {"a": " ".join(words[:12]), "b": " ".join(words[12:25]), "c": " ".join(words[25:])}
    assert [leak.item for leak in check_folder(lines(tmp_path, [row]), BENCHMARK).leaks] == ["0"]


def test_half_a_question_is_none(tmp_path: Path) -> None:
    words = ROWS[0]["question"].split()
    assert not check_folder(lines(tmp_path, [{"text": " ".join(words[: len(words) // 2])}]), BENCHMARK).leaks


def test_a_row_that_holds_question_and_answer_counts_once(tmp_path: Path) -> None:
    report = check_folder(lines(tmp_path, [chat(ROWS[0]["question"], ROWS[0]["answer"])]), BENCHMARK)
    assert [(leak.item, leak.kind) for leak in report.leaks] == [("0", "verbatim")]


def test_nothing_scanned_is_a_failure_with_its_reasons(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"x" * 100)
    (tmp_path / "plot.png").write_bytes(b"\x89PNG\r\n" + bytes(50))
    (tmp_path / "empty.jsonl").write_text("")
    (tmp_path / "link.jsonl").symlink_to(tmp_path / "empty.jsonl")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "cut.jsonl.gz").write_bytes(b"\x1f\x8b\x08 cut off")
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 broken")
    report = check_folder(tmp_path, BENCHMARK)
    assert (report.verdict, report.passed, report.scanned_rows) == (Verdict.NOTHING_SCANNED, False, 0)
    assert set(report.reasons()) == {
        "a broken table: ArrowInvalid",
        "a link, not followed",
        "a picture, sound, program or PDF",
        "cannot be unpacked: broken or cut off",
        "empty",
        "neither a file nor a folder",
        "weights of a model",
    }
    assert sum(report.reasons().values()) == 7


def test_token_ids_are_counted_without_a_tokenizer_and_read_with_one(tmp_path: Path) -> None:
    text = ROWS[0]["question"]
    row = {"input_ids": [ord(character) for character in text], "attention_mask": [1] * len(text)}
    lines(tmp_path, [row])
    blind = check_folder(tmp_path, BENCHMARK)
    assert (blind.verdict, blind.reasons()) == (
        Verdict.NOTHING_SCANNED,
        {"token ids without a tokenizer: name one": 1},
    )
    seeing = check_folder(tmp_path, BENCHMARK, Check(decode=lambda ids: "".join(map(chr, ids))))
    assert [leak.item for leak in seeing.leaks] == ["0"]


def test_a_pickle_is_read_without_being_loaded(tmp_path: Path) -> None:
    (tmp_path / "data.pkl").write_bytes(pickle.dumps([_Bomb(), ROWS[0]["question"]]))
    assert [leak.item for leak in check_folder(tmp_path, BENCHMARK).leaks] == ["0"]


class _Bomb:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.abort, ()  # pyright: ignore[reportReturnType]


def test_what_is_excluded_is_counted(tmp_path: Path) -> None:
    lines(tmp_path, [chat(row["question"], "") for row in ROWS], "test_data.jsonl")
    lines(tmp_path, [chat(row["question"], "") for row in CLEAN])
    report = check_folder(tmp_path, BENCHMARK, Check(exclude=("test_data*",)))
    assert (report.verdict, report.reasons()) == (Verdict.CLEAN, {"excluded by the caller": 1})


def test_a_bomb_does_not_unpack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import gzip

    monkeypatch.setattr("stepwell.ptb.contamination.files.LARGEST_BYTES", 1 << 20)
    (tmp_path / "bomb.txt.gz").write_bytes(gzip.compress(bytes(2 << 20)))
    assert check_folder(tmp_path, BENCHMARK).reasons() == {"unpacks to more than 1 MiB": 1}


def test_rows_too_short_to_tell_are_named() -> None:
    found = benchmark_of([{"id": "short", "question": "Why?", "answer": "So."}, *ROWS])
    assert (found.unindexed, found.items) == (("short",), 13)


def test_a_row_without_a_question_is_refused() -> None:
    with pytest.raises(UnreadableBenchmark, match="row 0 has the fields text: wanted one of question"):
        benchmark_of([{"text": "What?"}])


class Near:
    """Gives texts of apples a cosine of 0.9 to the question; stands for the model where only the rule is tested."""

    def embed(self, texts: list[str]) -> Embeddings:
        """Three directions: the question's, near it, across."""
        places = [
            [1.0, 0.0] if "?" in text else [0.9, 0.435889894] if "apples" in text else [0.0, 1.0] for text in texts
        ]
        return np.array(places, dtype=np.float32)


APPLES = {"question": "Anna has 12 red apples and 31 green pears in her garden; how many fruits has she?"}
REWORDED = "Anna owns a dozen things: apples 12 of them, pears, of which there are 31, what do they sum up to"


def test_a_near_text_is_a_paraphrase_only_with_the_same_numbers(tmp_path: Path) -> None:
    rows = [{"text": REWORDED}, {"text": REWORDED.replace("31", "47")}, {"text": REWORDED.replace("apples", "plums")}]
    search = ParaphraseSearch(benchmark := benchmark_of([APPLES]), Near())
    report = check_folder(lines(tmp_path, rows), benchmark, paraphrases=search)
    assert [(leak.row, leak.kind) for leak in report.leaks] == [(0, "paraphrase")]
    assert (report.embedded, report.not_embedded) == (3, 0)


def test_the_model_of_the_wheel_puts_a_rewording_nearest() -> None:
    try:
        folder = minilm_folder()
    except NoEmbedder as error:
        pytest.skip(str(error))
    other = "A train leaves the station at 12 and arrives at 31 minutes past the hour, how fast is it going"
    question, *near = SentenceEmbedder(folder).embed([APPLES["question"], REWORDED, other])
    assert float(question @ near[0]) > 0.6 > 0.3 > float(question @ near[1])
    assert np.linalg.norm(question) == pytest.approx(1.0, abs=1e-5)


def test_texts_beyond_the_bound_are_counted(tmp_path: Path) -> None:
    search = ParaphraseSearch(BENCHMARK, Near(), most=10)
    report = check_folder(lines(tmp_path, [{"text": row["question"]} for row in CLEAN]), BENCHMARK, paraphrases=search)
    assert (report.embedded, report.not_embedded) == (10, 50)


def test_the_command_says_what_it_found_and_exits_by_the_verdict(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    benchmark = lines(tmp_path / "b", list(ROWS), "test.jsonl") / "test.jsonl"
    assert load_benchmark([benchmark]) == BENCHMARK
    work = lines(tmp_path / "work", [chat(row["question"], row["answer"]) for row in ROWS[:4]])
    asked = ["ptb", "contamination", str(work), "--benchmark", str(benchmark)]
    assert main(asked) == 1
    assert "contaminated: 4 rows hold rows of the benchmark, 3 are allowed" in capsys.readouterr().out
    assert main([*asked, "--allowed", "4", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["verdict"] == "tolerated"
    assert main([*asked, "--most", "4"]) == 2
    assert "--most would do nothing" in capsys.readouterr().err
    assert main(["ptb", "contamination", str(tmp_path / "none"), "--benchmark", str(benchmark)]) == 2
