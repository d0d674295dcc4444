"""The disk cache: it returns only entries that this user stored under that name, and ignores files of other users."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from textwrap import indent

import pytest

from tests.backends.programs import C_COMPILERS, call, device, elementwise
from tinyexplore.dtype import dtypes
from tinyexplore.runtime import clang, disk_cache
from tinyexplore.util import Context, private_folder
from tinyexplore.util.fetch import kept_folders

ROOT = str(Path(__file__).parents[3])
NAMES = [f"{number:040x}" for number in range(12)]
f32 = dtypes.float32
DOUBLED = elementwise([f32], lambda x: [x[0] * 2.0], 4)[0]
with_forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")
as_root = pytest.mark.skipif(private_folder.user() != 0, reason="only root can change the owner of a file")
with_owners = pytest.mark.skipif(private_folder.user() is None, reason="no owners and modes here")


@pytest.fixture(autouse=True)
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of entries."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    private_folder._warned.clear()
    monkeypatch.setattr(disk_cache, "_stores", {})
    monkeypatch.setattr(disk_cache, "_has_warned", False)
    with Context(CACHELEVEL=1), warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        yield tmp_path / "cache" / "tinyexplore"


def content_of(name: str) -> bytes:
    source = random.Random(name)
    return source.randbytes(source.randrange(1, 300))


def entries(store: Path) -> list[Path]:
    return sorted(store.glob("[!.]*"))


def put(path: Path, content: bytes) -> None:
    """As a new file: some disks write at once what goes in the place of something else, which takes long."""
    path.unlink()
    path.write_bytes(content)
    path.chmod(0o600)


def kept_all(store: Path) -> list[Path]:
    for name in NAMES:
        disk_cache.keep(name, content_of(name))
    return entries(store)


def in_another_process(code: str, **more: str) -> str:
    """The output of a program."""
    env = {**os.environ, "PYTHONPATH": ROOT, "CACHELEVEL": "1", **more}
    code = f"from tinyexplore.runtime import disk_cache\n{code}"
    done = subprocess.run([sys.executable, "-c", code], env=env, text=True, stdout=subprocess.PIPE, check=True)
    return done.stdout


AT_ONCE = """
import os, random, time
def work():
    try:
{code}
    except BaseException as error:
        os.write(1, repr(error).encode() + b"\\n")
    os._exit(0)
start = time.time() + 0.3
for process in range({count}):
    if os.fork() == 0:
        time.sleep(max(0.0, start - time.time()))
        work()
for process in range({count}):
    os.wait()
"""


def at_once(count: int, code: str, **more: str) -> list[str]:
    """The lines that `count` processes write, which do `code` at the same time, each with its number in `process`."""
    return in_another_process(AT_ONCE.format(count=count, code=indent(code, " " * 8)), **more).splitlines()


def test_stored_entries_are_found_until_the_cache_is_disabled(store: Path) -> None:
    made = []

    def make() -> bytes:
        made.append(True)
        return b"machine code"

    assert [disk_cache.load_cached("key", make, bytes.decode) for _ in range(3)] == ["machine code"] * 3
    assert len(made) == 1
    assert in_another_process("print(disk_cache.find('key'))") == "b'machine code'\n"
    with Context(CACHELEVEL=0):
        assert disk_cache.load_cached("key", make, bytes) == b"machine code"
    assert len(made) == 2
    assert [path.stat().st_mode & 0o777 for path in (store, store / ".key", store / "key")] == [0o700, 0o600, 0o600]


def test_an_entry_counts_only_under_its_own_name(store: Path) -> None:
    paths = kept_all(store)
    contents = [path.read_bytes() for path in paths]
    for path in paths:
        for content in contents:
            put(path, content)
            expected = content_of(path.name) if content == contents[paths.index(path)] else None
            assert disk_cache.find(path.name) == expected
        put(path, contents[paths.index(path)])


def test_no_changed_entry_is_found(store: Path) -> None:
    source = random.Random(1)
    paths = kept_all(store)
    for number in range(1500):
        path = source.choice(paths)
        whole = path.read_bytes()
        changed = bytearray(whole)
        match number % 5:
            case 0:
                place = source.randrange(8 * len(whole))
                changed[place // 8] ^= 1 << place % 8
            case 1:
                del changed[source.randrange(len(whole)) :]
            case 2:
                changed += source.randbytes(source.randrange(1, 40))
            case 3:
                del changed[source.randrange(len(whole))]
            case 4:
                start = source.randrange(len(whole))
                changed[start : start + 8] = source.randbytes(9)
        put(path, changed)
        assert disk_cache.find(path.name) is None
        put(path, whole)
        assert disk_cache.find(path.name) == content_of(path.name)


def test_another_key_finds_no_entry_and_a_lost_key_is_recreated(store: Path) -> None:
    def is_found() -> list[bool]:
        """Here, and by a new process."""
        here = disk_cache.find(NAMES[0]) is not None
        disk_cache._stores.clear()
        return [here, disk_cache.find(NAMES[0]) is not None]

    kept_all(store)
    assert is_found() == [True, True]
    key = store / ".key"
    secret = key.read_bytes()
    for damaged in (b"", secret[:31], secret + b"x"):
        key.write_bytes(damaged)
        assert is_found() == [False, False]
        disk_cache.keep(NAMES[0], b"new")
        assert is_found() == [True, True] and len(key.read_bytes()) == 32 != damaged
    key.unlink()
    assert is_found() == [False, False]
    disk_cache.keep(NAMES[0], b"new")
    assert is_found() == [True, True]
    key.unlink()
    key.mkdir()  # neither read nor replaced
    with pytest.warns(RuntimeWarning, match="cannot be used"):
        disk_cache.keep(NAMES[0], b"newer")
    assert is_found() == [False, False]


def test_processes_with_different_keys_agree_on_one(store: Path) -> None:
    disk_cache.keep("first", b"1")
    key = store / ".key"
    key.write_bytes(bytes(32))  # another process has made it
    in_another_process("disk_cache.keep('first', b'2')")
    assert disk_cache.find("first") == b"2"
    disk_cache.keep("second", b"3")
    assert in_another_process("print(disk_cache.find('second'))") == "b'3'\n"


@with_owners
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o660])
def test_a_key_that_others_may_have_read_or_written_is_replaced(store: Path, mode: int) -> None:
    disk_cache.keep("first", b"1")
    key = store / ".key"
    secret = key.read_bytes()
    key.chmod(mode)
    assert disk_cache.find("first") is None
    disk_cache.keep("second", b"2")
    assert disk_cache.find("second") == b"2" and key.read_bytes() != secret and key.stat().st_mode & 0o777 == 0o600


@with_owners
@pytest.mark.parametrize("mode", [0o777, 0o775, 0o720, 0o702, 0o1777])
def test_a_folder_that_others_can_write_is_not_used_and_warns_once(store: Path, mode: int) -> None:
    kept_all(store)
    store.chmod(mode)
    with pytest.warns(RuntimeWarning, match=rf"tinyexplore is not used: .*{mode:04o}.*chmod") as told:
        assert [disk_cache.find(name) for name in NAMES] == [None] * len(NAMES)
        disk_cache.keep("new", b"1")
    assert len(told) == 1 and not (store / "new").exists()
    store.chmod(0o700)
    assert disk_cache.find(NAMES[0]) == content_of(NAMES[0])


@as_root
@pytest.mark.parametrize("changed", ["folder", "key", "entry"])
def test_files_of_another_user_are_not_used(store: Path, changed: str) -> None:
    kept_all(store)
    os.chown({"folder": store, "key": store / ".key", "entry": store / NAMES[0]}[changed], 54321, 54321)
    if changed == "folder":
        with pytest.warns(RuntimeWarning, match="user 54321, not to this user, 0"):
            assert disk_cache.find(NAMES[0]) is None
    else:
        assert disk_cache.find(NAMES[0]) is None
        assert (disk_cache.find(NAMES[1]) is None) == (changed == "key")
        disk_cache.keep(NAMES[0], b"new")
        assert disk_cache.find(NAMES[0]) == b"new"


@with_owners
def test_an_entry_that_others_can_write_is_a_miss(store: Path) -> None:
    kept_all(store)
    (store / NAMES[0]).chmod(0o620)
    assert disk_cache.find(NAMES[0]) is None and disk_cache.find(NAMES[1]) is not None


@as_root
def test_another_users_object_files_are_not_run_by_root(store: Path) -> None:
    """The other user has made the folder before, with a key and entries that are right by it."""
    kept_all(store)
    for path in (store, *store.iterdir()):
        os.chown(path, 54321, 54321)
    with pytest.warns(RuntimeWarning, match="it belongs to user 54321"):
        assert [disk_cache.find(name) for name in NAMES] == [None] * len(NAMES)


@as_root
def test_root_makes_no_folder_in_another_users_home(store: Path) -> None:
    store.parent.mkdir()
    os.chown(store.parent, 54321, 54321)
    with pytest.warns(RuntimeWarning, match="cannot be used"):
        disk_cache.keep("name", b"1")
    assert not store.exists()


def test_links(store: Path, tmp_path: Path) -> None:
    """The folder may be one; no entry is, and no key."""
    kept_all(store)
    store.rename(tmp_path / "elsewhere")
    store.symlink_to(tmp_path / "elsewhere")
    assert disk_cache.find(NAMES[0]) == content_of(NAMES[0])
    for name in (".key", NAMES[0]):
        (store / name).rename(tmp_path / "moved")
        (store / name).symlink_to(tmp_path / "moved")
        assert disk_cache.find(NAMES[0]) is None
        (store / name).unlink()
        (tmp_path / "moved").rename(store / name)
    assert disk_cache.find(NAMES[0]) == content_of(NAMES[0])
    if private_folder.user() == 0:
        os.chown(store, 54321, 54321, follow_symlinks=False)
        disk_cache._stores.clear()  # as a new process
        with pytest.warns(RuntimeWarning, match="a link .*user 54321"):
            assert disk_cache.find(NAMES[0]) is None


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
def test_a_named_pipe_as_an_entry_does_not_block(store: Path) -> None:
    kept_all(store)
    (store / NAMES[0]).unlink()
    os.mkfifo(store / NAMES[0])
    assert disk_cache.find(NAMES[0]) is None


@pytest.mark.parametrize("variable, folder", [("HOME", "home"), ("HOME", "./h")])
def test_a_relative_home_is_not_used(
    variable: str, folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    monkeypatch.setenv(variable, folder)
    with pytest.warns(RuntimeWarning, match=f"{variable}='{folder}' .*absolute"):
        assert disk_cache.find("name") is None
    disk_cache.keep("name", b"")  # without a second warning
    with pytest.warns(RuntimeWarning, match="Downloads are not cached"):
        assert not next(kept_folders()).is_relative_to(tmp_path)
    with Context(CACHELEVEL=0):
        assert disk_cache.find("name") is None
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["", "../x", "a/b", ".key", "-", "a\0b", "a\n"])
def test_a_name_cannot_leave_the_folder(name: str) -> None:
    for use in (lambda: disk_cache.find(name), lambda: disk_cache.keep(name, b"")):
        with pytest.raises(ValueError, match="the name of an entry"):
            use()


def test_programs_run_without_a_cache_folder(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def works() -> bool:
        return (
            disk_cache.load_cached("name", lambda: b"made", bytes.decode) == "made" and disk_cache.find("name") is None
        )

    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null/nowhere")
    with pytest.warns(RuntimeWarning, match="/dev/null/nowhere/tinyexplore cannot be used"):
        assert works()
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    monkeypatch.setattr(Path, "home", lambda: (_ for _ in ()).throw(RuntimeError("no home")))
    assert works()
    monkeypatch.undo()
    store.parent.mkdir(exist_ok=True)
    store.write_bytes(b"")
    monkeypatch.setenv("XDG_CACHE_HOME", str(store.parent))
    with pytest.warns(RuntimeWarning, match="not used: .*not a folder"), Context(CACHELEVEL=1):
        assert works()


@with_owners
def test_a_folder_that_may_only_be_read_is_read(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryDirectory() as place:
        monkeypatch.setenv("XDG_CACHE_HOME", place)
        is_root, folder = private_folder.user() == 0, Path(place) / "tinyexplore"
        if is_root:  # whom no mode keeps from writing
            os.chown(place, 54321, -1)
            os.seteuid(54321)
        try:
            disk_cache.keep("name", b"1")
            folder.chmod(0o500)
            with pytest.warns(RuntimeWarning, match="cannot be used.*Permission denied"):
                disk_cache.keep("new", b"2")
            disk_cache.keep("newer", b"3")
            assert [disk_cache.find("name"), disk_cache.find("new")] == [b"1", None]
        finally:
            folder.chmod(0o700)
            if is_root:
                os.seteuid(0)


@with_forks
def test_processes_that_start_together_make_one_key(store: Path) -> None:
    keep = "disk_cache.keep(f'name{process}', b'1')"
    write = "os.write(1, disk_cache._stores.popitem()[1].key.hex().encode() + b'\\n')"
    code = f"{keep}\n{write}"
    for _ in range(4):
        keys = at_once(24, code)
        assert keys == [(store / ".key").read_bytes().hex()] * 24
        assert [disk_cache.find(f"name{number}") for number in range(24)] == [b"1"] * 24
        shutil.rmtree(store)


def test_of_keys_made_at_the_same_time_the_first_counts(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process makes its key between this one's look and its own."""
    link = os.link

    def later(new: str, path: str) -> None:
        Path(path).write_bytes(bytes(32))
        Path(path).chmod(0o600)
        link(new, path)

    monkeypatch.setattr(os, "link", later)
    disk_cache.keep("name", b"1")
    assert (store / ".key").read_bytes() == bytes(32) and disk_cache.find("name") == b"1"


def test_a_key_is_created_without_hard_links(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(new: str, path: str) -> None:
        raise PermissionError("no links")

    monkeypatch.setattr(os, "link", refuse)
    disk_cache.keep("name", b"1")
    assert disk_cache.find("name") == b"1" and len((store / ".key").read_bytes()) == 32


def bytes_in(store: Path) -> int:
    return sum(-(-path.stat().st_size // 4096) * 4096 for path in store.rglob("*") if path.is_file())


def test_the_least_recently_used_entries_are_evicted(store: Path) -> None:
    now = time.time()
    data = bytes(40 << 10)
    with Context(CACHE_MB=1):
        for number in range(22):
            disk_cache.keep(f"name{number}", data)
            os.utime(store / f"name{number}", (now - 10**6 + number,) * 2)
        assert disk_cache.find("name0") == data, "it is used, from now on the most recently"
        for number in range(22, 25):
            disk_cache.keep(f"name{number}", data)
    there = [number for number in range(25) if disk_cache.find(f"name{number}") is not None]
    assert there[0] == 0 and there[1:] == list(range(there[1], 25)) and 6 < there[1] < 12
    assert bytes_in(store) <= 1 << 20


def test_the_limit(store: Path) -> None:
    with Context(CACHE_MB=0):
        disk_cache.keep("name", b"1")
        assert disk_cache.find("name") is None
    with Context(CACHE_MB=1):
        disk_cache.keep("large", bytes(300 << 10))
        assert disk_cache.find("large") is None, "more than a quarter of all"
        for number in range(400):
            disk_cache.keep(f"name{number % 7}", bytes(1000))
        assert len(entries(store)) == 7, "the same ones written again make no room"
    (store / ".size").unlink()
    for number in range(300):
        (store / f"old{number}").write_bytes(bytes(5000))
    with Context(CACHE_MB=1):
        disk_cache.keep("name", b"1")
    assert bytes_in(store) <= 1 << 20, "what was there before is counted"


@with_forks
def test_twenty_processes_that_write_at_once_keep_to_the_limit(store: Path) -> None:
    code = """
random.seed(process)
for _ in range(50):
    name, size = f"n{random.randrange(200)}", random.randrange(1, 60_000)
    disk_cache.keep(name, name.encode() * (size // len(name) + 1))
    for name in (f"n{random.randrange(200)}" for _ in range(5)):
        found = disk_cache.find(name)
        assert found is None or found == name.encode() * (len(found) // len(name)), name
os.write(1, b"done\\n")
"""
    assert at_once(20, code, CACHE_MB="1") == ["done"] * 20
    each = -(-60_000 // disk_cache.BLOCK_BYTES) * disk_cache.BLOCK_BYTES
    assert bytes_in(store) <= (1 << 20) + 20 * each, "each may have begun to write before room was made"
    with Context(CACHE_MB=1):
        for number in range(8):
            disk_cache.keep(f"last{number}", bytes(60_000))
    assert bytes_in(store) <= 1 << 20
    assert list((store / ".new").iterdir()) == []


def test_leftovers_of_interrupted_writes_are_removed(store: Path) -> None:
    disk_cache.keep("name", b"1")
    old, new = store / ".new" / "old", store / ".new" / "young"
    for path, age in ((old, 7200), (new, 60)):
        path.write_bytes(b"half")
        os.utime(path, (time.time() - age,) * 2)
    disk_cache._stores.clear()  # as a new process
    assert disk_cache.find("name") == b"1"
    assert not old.exists() and new.exists()


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, OSError])
def test_an_interrupted_write_leaves_no_file(
    store: Path, interruption: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    disk_cache.keep("name", b"1")

    def interrupted(new: str, path: str) -> None:
        raise interruption

    monkeypatch.setattr(os, "replace", interrupted)
    if interruption is OSError:
        with pytest.warns(RuntimeWarning, match="cannot be used"):
            disk_cache.keep("other", b"2")
    else:
        with pytest.raises(interruption):
            disk_cache.keep("other", b"2")
    assert list((store / ".new").iterdir()) == [] and len(entries(store)) == 1


@pytest.mark.parametrize("name", ["LLVM", *(f"CLANG with {compiler}" for compiler in C_COMPILERS)])
@pytest.mark.parametrize("content", ["nothing", "noise", "another program"])
@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
def test_machine_code_that_does_not_load_is_recompiled(name: str, content: str, store: Path) -> None:
    opened = device(name)
    spec = opened.renderer.render("kernel", DOUBLED)
    with Context(CACHELEVEL=0):
        opened.compile(spec)
    other = opened.renderer.render("another", DOUBLED)
    opened.compile(other)
    kept = {
        "nothing": b"",
        "noise": random.Random(0).randbytes(500),
        "another program": disk_cache.find(other.key) or b"",
    }
    disk_cache.keep(spec.key, kept[content])
    program = opened.compile(spec)
    assert call(program, [(f32, 4)], [(f32, [1.0, 2.0, 3.0, 4.0])]) == [[2.0, 4.0, 6.0, 8.0]]
    assert disk_cache.find(spec.key) not in (None, kept[content])


def test_programs_of_a_c_compiler_are_keyed_by_the_native_cpu(tmp_path: Path) -> None:
    path = clang.find_compiler()
    script = tmp_path / os.path.basename(path)
    keys = []
    for cpu in ("x86-64-v2", "x86-64-v3") if clang.machine() == "x86_64" else ("cortex-a53", "neoverse-n1"):
        option = "-march" if clang.machine() == "x86_64" else "-mcpu"
        arguments = f'for x; do shift; [ "$x" = {option}=native ] && x={option}={cpu}; set -- "$@" "$x"; done'
        script.write_text(f'#!/bin/sh\n{arguments}\nexec {path} "$@"\n')
        script.chmod(0o755)
        keys.append(clang.CCompiler(str(script)).version)
    assert keys[0] != keys[1]
    assert clang.CCompiler(path).version == clang.CCompiler(path).version
