"""The report as a page: whole, in one file, readable without eyes, and in a real browser."""

import re

import pytest
from click.testing import CliRunner

from autotune.commands.report import command
from autotune.cost import cost_of, energy
from autotune.journal import FILE, Journal, load_runs
from autotune.measurement import Measurement, Status
from autotune.records import TrialRecord
from autotune.reporting import page
from autotune.reporting.report import report
from autotune.reporting.study import studies
from search_spaces.errors import BadLog, CannotWrite
from tests.support.journals import EVIL, measurements, run_record, write_journal
from tests.support.pages import CHROMIUM, NO_CHROMIUM, chromium, misfits, parsed
from tests.support.recorded import tune_recorded

FIGURES = ("curve", "race", "roofline", "prediction", "importance", "effects", "space-0", "space-1")
SECTIONS = ("failures", "winner", "cost", "reuse", "method")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    write_journal(folder, 300)
    return folder


@pytest.fixture(scope="module")
def text(run):
    return report(studies(run), 3.5)


@pytest.fixture(scope="module")
def document(text):
    return parsed(text)


def by_id(document, name):
    return next(e for tag in ("figure", "section") for e in document.all(tag) if e.get("id") == name)


def test_every_section_is_there_in_order(document):
    names = [e.get("id") for e in document.all("figure")]
    assert names == [f"task-1-{name}" for name in FIGURES]
    assert all(by_id(document, f"task-1-{name}").all("h3") for name in SECTIONS)


def test_nothing_is_fetched(text, document):
    assert len(text.encode()) < 400_000
    assert not re.search(r"https?:|//[a-z]|@import|url\(", text)
    assert not document.all("script") + document.all("img") + document.all("iframe")
    assert [e.get("href") for e in document.all("link")] == ["data:,"]


def test_every_picture_has_words_and_a_table(document):
    pictures = [s for s in document.all("svg") if s.get("role") == "img"]
    assert len(pictures) == len(FIGURES) + 3, "three of them in two widths"
    names = {e.get("id"): e.text for s in pictures for tag in ("title", "desc") for e in s.all(tag)}
    for picture in pictures:
        title, description = (names[name] for name in picture.get("aria-labelledby").split())
        assert title
        assert len(description) > 20
    for figure in document.all("figure"):
        assert figure.all("figcaption")[0].text
        rows = figure.all("tbody")[0].all("tr")
        columns = figure.all("thead")[0].all("th")
        assert rows
        assert all(len(row.all("td")) == len(columns) for row in rows)


def test_names_are_unique(text):
    names = re.findall(r'\bid="([^"]+)"', text)
    assert len(names) == len(set(names))


def test_what_a_journal_says_is_never_markup(text, document):
    assert EVIL not in text
    assert EVIL in by_id(document, "task-1-failures").text


def test_the_numbers_are_those_of_the_journal(run, document):
    (log,) = load_runs(run)
    race = log.races[-1]
    tiles = {tile.all("dt")[0].text: tile.all("dd")[0].text for tile in document.all("dl")[0].all("div")}
    assert f"{race.over_default.times:.4g}x" in tiles["against the untuned default"]
    assert f"{race.over_library.low:.4g} to {race.over_library.high:.4g}" in tiles["against cuBLAS"]
    failed = sum(m.status is not Status.OK for m in log.trials.values())
    assert failed > 0
    assert f"{failed} of 300 trials failed" in by_id(document, "task-1-failures").text
    cost = cost_of(log)
    shown = by_id(document, "task-1-cost").text
    assert energy(cost.joules) in shown
    assert f"{cost.money(3.5):.2f} at 3.5 an hour" in shown


def test_the_curve_shows_default_and_library(document):
    words = by_id(document, "task-1-curve").text
    assert "untuned default" in words
    assert "cuBLAS" in words


def test_what_the_search_expected_is_told_from_what_a_model_says_afterwards(document, tmp_path):
    (log,) = load_runs_of(tmp_path, 100)
    ran = sum(m.status is Status.OK for m in list(log.trials.values())[41:])
    words = by_id(parsed(report(studies(tmp_path))), "task-1-prediction").text
    assert f"expected of {ran} trials before it measured them" in words


def load_runs_of(folder, trials):
    write_journal(folder, trials)
    return load_runs(folder)


def test_without_a_race_the_rest_is_there(tmp_path):
    write_journal(tmp_path, 40, raced=False)
    document = parsed(report(studies(tmp_path)))
    names = [e.get("id") for e in document.all("figure")]
    assert "task-1-race" not in names
    assert {"task-1-curve", "task-1-roofline"} <= set(names)
    assert "Not raced" in document.text


@pytest.mark.parametrize("trials", [2, 3, 6])
def test_a_run_that_has_hardly_begun_is_reported(tmp_path, trials):
    write_journal(tmp_path, trials, raced=False)
    document = parsed(report(studies(tmp_path)))
    assert "A model needs 32 trials" in document.text


def test_a_run_in_which_everything_failed_says_why(tmp_path):
    failed = [Measurement(m.schedule, Status.TIMEOUT, detail="it hung") for m in measurements(3)]
    with Journal(tmp_path) as journal:
        journal.append(run_record(3))
        for number, measurement in enumerate(failed):
            journal.append(TrialRecord.of("r1", number, 1.0, measurement))
    document = parsed(report(studies(tmp_path)))
    assert "No schedule could be built, run and verified." in document.text
    assert "it hung" in document.text


def test_a_run_without_trials_is_reported(tmp_path):
    with Journal(tmp_path) as journal:
        journal.append(run_record(3))
    assert "No schedule could be built" in parsed(report(studies(tmp_path))).text


def test_several_runs_are_one_page_with_an_index(run, tmp_path):
    write_journal(tmp_path, 40, strategy="random")
    document = parsed(report([*studies(run), *studies(tmp_path)]))
    links = [a.get("href") for a in document.all("nav")[0].all("a")]
    sections = [s.get("id") for s in document.all("section")]
    assert links == ["#task-1", "#task-2"]
    assert {"task-1", "task-2"} <= set(sections)
    assert len(document.all("h1")) == 1


def test_of_many_tasks_less_of_each_is_drawn_so_that_the_page_stays_small(tmp_path):
    write_journal(tmp_path, 500, strategy="random")
    (study,) = studies(tmp_path)
    text = report([study] * 30)
    assert len(text.encode()) < 2_000_000
    (log,) = load_runs(tmp_path)
    ran = sum(m.status is Status.OK for m in log.trials.values())
    assert f"Of {ran} trials that ran 200 are drawn" in text


def test_ten_thousand_trials_stay_small_and_say_what_is_left_out(tmp_path):
    write_journal(tmp_path, 10_000)
    text = report(studies(tmp_path))
    assert len(text.encode()) < 1_000_000
    drawn = re.search(r"Of ([\d,]+) trials that ran ([\d,]+) are drawn", text)
    ran, shown = (int(number.replace(",", "")) for number in drawn.groups())
    assert ran > 9000
    assert 3000 <= shown < 3100


def test_a_real_search_is_reported(tmp_path):
    tune_recorded(tmp_path, 48, "hybrid")
    done = CliRunner().invoke(command, [str(tmp_path)], catch_exceptions=False)
    assert "report.html" in done.stdout
    document = parsed((tmp_path / "report.html").read_text())
    assert by_id(document, "task-1-curve").all("svg")
    assert "told no power" in by_id(document, "task-1-cost").text


def test_the_default_place_is_the_runs_folder_and_here_for_several(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("one", "two"):
        write_journal(tmp_path / name, 5)
    CliRunner().invoke(command, ["one/" + FILE], catch_exceptions=False)
    CliRunner().invoke(command, ["one", "two"], catch_exceptions=False)
    assert (tmp_path / "one" / "report.html").is_file()
    assert (tmp_path / "report.html").is_file()


def test_mistakes_are_said_in_a_line(run, tmp_path):
    with pytest.raises(BadLog, match="no journal at"):
        CliRunner().invoke(command, [str(tmp_path)], catch_exceptions=False)
    (tmp_path / "file").write_text("")
    with pytest.raises(CannotWrite, match="choose another --out"):
        page.write_page(tmp_path / "file" / "report.html", "x")


def luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_texts_stand_out_from_what_is_behind_them_by_day_and_by_night(text):
    schemes = [
        dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", block)) for block in re.findall(r":root \{(.*?)\}", text, re.S)
    ]
    assert len(schemes) == 3, "light, dark and print"
    for scheme in schemes[:2]:
        for back in ("page", "card"):
            for ink in ("ink", "soft", "one", "two", "three", "four", "five", "six"):
                assert contrast(scheme[ink], scheme[back]) >= 4.5, (ink, back)
            assert contrast(scheme["dot"], scheme[back]) >= 3.0
            assert contrast(scheme["bad"], scheme[back]) >= 3.0


needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason=NO_CHROMIUM)


@needs_chromium
@pytest.mark.parametrize("width", [375, 800, 1400])
def test_in_a_browser_nothing_is_cut_or_too_small_at_any_width(text, tmp_path, width):
    assert misfits(text, width, tmp_path) == f"fits {width}"


@needs_chromium
def test_in_a_browser_dark_mode_is_dark(text, tmp_path):
    probe = "<script>document.title = getComputedStyle(document.body).backgroundColor</script></body>"
    (tmp_path / "page.html").write_text(text.replace("</body>", probe))
    for flags, colour in (
        ((), "rgb(255, 255, 255)"),
        (("--blink-settings=preferredColorScheme=0",), "rgb(13, 17, 23)"),
    ):
        shown = chromium(tmp_path / "page.html", *flags, "--dump-dom")
        assert f"<title>{colour}</title>" in shown


@needs_chromium
def test_in_a_browser_it_can_be_photographed_and_printed(text, tmp_path):
    (tmp_path / "page.html").write_text(text)
    chromium(tmp_path / "page.html", "--window-size=800,2000", f"--screenshot={tmp_path / 'page.png'}")
    chromium(tmp_path / "page.html", f"--print-to-pdf={tmp_path / 'page.pdf'}")
    assert (tmp_path / "page.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "page.pdf").read_bytes().startswith(b"%PDF")
