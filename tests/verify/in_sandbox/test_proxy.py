"""Tests and pytest in one process, the code they test in a worker."""

import subprocess
import sys
import textwrap
from pathlib import Path

from gametape.verify.in_sandbox import proxy
from tests.patience import HANG, effort
from tests.verify.in_sandbox.worker_process import VERIFY, serving, write_code

ACCOUNT = {
    "bank/__init__.py": "",
    "bank/account.py": """
        class InsufficientFunds(ValueError):
            def __init__(self, missing):
                super().__init__(f"{missing} short")
                self.missing = missing

        class Account:
            def __init__(self, balance=0):
                self.balance = balance

            def withdraw(self, amount):
                if amount > self.balance:
                    raise InsufficientFunds(amount - self.balance)
                self.balance -= amount
                return self.balance

            def __eq__(self, other):
                return isinstance(other, Account) and other.balance == self.balance

        class Anything(Account):
            def __eq__(self, other):
                return True
    """,
    "bank/report.py": """
        from collections import Counter

        def totals(rows, key=None):
            counts = Counter(key(row) if key else row for row in rows)
            print(f"{len(counts)} kinds")
            return counts

        def leave():
            import os
            os._exit(0)
    """,
}


TESTS = """
    import pytest
    from bank import report
    from bank.account import Account, Anything, InsufficientFunds

    @pytest.fixture
    def account():
        return Account(10)

    @pytest.mark.parametrize(("amount", "left"), [(1, 9), (10, 0)])
    def test_withdraw(account, amount, left):
        assert account.withdraw(amount) == left
        assert account == Account(left)

    class TestErrors:
        def test_too_much(self, account):
            with pytest.raises(InsufficientFunds, match="5 short") as caught:
                account.withdraw(15)
            assert caught.value.missing == 5

        def test_is_a_value_error(self, account):
            with pytest.raises(ValueError):
                account.withdraw(11)

    def test_totals(capsys):
        assert report.totals(["a", "bb", "c"], key=len) == {1: 2, 2: 1}
        assert capsys.readouterr().out == "2 kinds\\n"

    def test_wrong():
        assert report.totals("aab") == {"a": 1, "b": 1}

    def test_forged():
        assert Anything() == 3

    def test_ended():
        report.leave()

    def test_after():
        assert report.totals("a") == {"a": 1}
"""


RUN = """
    import socket, sys
    sys.path.insert(0, sys.argv[1])
    import pytest
    from in_sandbox import proxy
    sock = socket.socket(fileno=int(sys.argv[2]))
    proxy.install_proxy(sock, ["bank.account", "bank.report"], ["bank.account:Account"], [sys.argv[3]])
    sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", "-rA", "--tb=line", sys.argv[4]]))
"""


def test_pytest_over_a_worker(tmp_path: Path) -> None:
    write_code(tmp_path / "code", ACCOUNT)
    write_code(tmp_path, {"tests/test_bank.py": TESTS})
    with serving() as sock:
        command = [sys.executable, "-I", "-B", "-c", textwrap.dedent(RUN), VERIFY, sock.fileno(), tmp_path / "code"]
        ran = subprocess.run(
            [*map(str, command), str(tmp_path / "tests")],
            cwd=tmp_path,
            pass_fds=[sock.fileno()],
            capture_output=True,
            text=True,
            check=False,
            timeout=HANG,
        )
    outcomes = {
        name.partition("::")[2]: outcome
        for outcome, name in (line.split()[:2] for line in ran.stdout.splitlines() if "test_bank.py::" in line)
    }
    failed = {"test_wrong", "test_forged", "test_ended", "test_after"}
    passed = {"test_withdraw[1-9]", "test_withdraw[10-0]", "test_totals"}
    passed |= {"TestErrors::test_too_much", "TestErrors::test_is_a_value_error"}
    assert outcomes == {**dict.fromkeys(failed, "FAILED"), **dict.fromkeys(passed, "PASSED")}, ran.stdout


def test_a_call_costs_little(tmp_path: Path) -> None:
    write_code(tmp_path, {"speedy.py": "def add(a, b): return a + b\n"})
    with serving() as sock:
        proxy.install_proxy(sock, ["speedy"], (), [str(tmp_path)])
        from speedy import add

        assert effort(lambda: [add(number, 1) for number in range(1000)]) < 400
    sys.meta_path.pop(0)
    del sys.modules["speedy"]
