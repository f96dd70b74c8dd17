"""A sweep's folder: named by its command, written by many jobs, read by one."""

from refadv_ablate.running.sweep import CellState, Sweep, slugify


def state(key, state="done", model="m", operator="bow"):
    return CellState(key, "/f", model, "d", "direct", operator, state)


def test_the_same_words_in_any_order_are_the_same_sweep(tmp_path):
    a = Sweep.of(tmp_path, ["perturb=bow", "seed=1"], False)
    assert Sweep.of(tmp_path, ["seed=1", "perturb=bow"], False) == a
    others = [
        Sweep.of(tmp_path, ["seed=1", "perturb=bow"], True),
        Sweep.of(tmp_path, ["seed=2", "perturb=bow"], False),
    ]
    assert a not in others


def test_jobs_report_and_the_launcher_reads(tmp_path, monkeypatch):
    monkeypatch.delenv("REFADV_SWEEP", raising=False)
    assert Sweep.inherited() is None
    sweep = Sweep.of(tmp_path, ["x=1"], True)
    sweep.begin(["x=1"], "command", {"parent": "p"})
    child = Sweep.inherited()
    assert child == sweep
    child.put(state("b", "running", "m2"))
    child.put(state("b", "failed", "m2"))
    child.put(state("a", operator="fixed"))
    child.put(state("c", operator="bow"))
    assert [(c.hash, c.state) for c in sweep.cells()] == [("c", "done"), ("a", "done"), ("b", "failed")]
    sweep.amend(extra=1)
    assert sweep.facts()["parent"] == "p"
    assert sweep.facts()["extra"] == 1
    sweep.begin(["x=1"], "command", {})
    assert sweep.cells() == []


def test_the_same_command_twice_waits_for_the_first(tmp_path, capfd):
    import threading

    sweep, order = Sweep.of(tmp_path, ["x=1"], True), []

    def second():
        with sweep.alone():
            order.append("second")

    with sweep.alone():
        other = threading.Thread(target=second)
        other.start()
        while "waits for its end" not in capfd.readouterr().err:
            assert other.is_alive()
        order.append("first")
    other.join()
    assert order == ["first", "second"]


def test_a_slug_is_safe_in_any_file_system():
    assert slugify("perturb=[bow,fixed]/../x y") == "perturb-bow-fixed-..-x-y"
    assert slugify("那个") == "x"
