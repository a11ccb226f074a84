"""Builds tests with Bazel and runs them without it, and lit's without lit, which is quicker."""
import concurrent.futures
import glob
import os
import re
import signal
import subprocess
import tempfile
import threading
import time
import xml.etree.ElementTree

from mutants import MutantError

PASSED_ON = ("OCCL_EXPLORE", "OCCL_TEST_RANKS", "CUDA_", "NCCL_")  # of the environment
TOOLS = ("tools/occlc", "tools/occl-opt", "tools/occl-run", "external/llvm/bin")  # as in test/lit.cfg.py


class Test:
    """A test that is built."""

    def __init__(self, folder, name, args, is_usual=True):
        self.name, self.args, self.is_usual = name, args, is_usual
        label, _, self.filter = name.partition("=")
        self.label, self.path = label, os.path.join("bazel-bin", label[2:].replace(":", "/"))
        path = os.path.join(folder, self.path)
        package = label[2:].split(":")[0]
        self.command = [path] + [re.sub(r"\$\(rootpaths? ([^)]*)\)", lambda match: root_path(package, match.group(1)), arg) for arg in args]
        self.runfiles = path + ".runfiles"
        self.script = None  # that lit wrote: text, path in the scratch folder, scratch folder
        self.seconds, self.duration, self.asked, self.kills = 0.0, 0.0, set(), {}

    def run(self, scratch, env, limit, duration, command=None, output=subprocess.DEVNULL):
        """Exit status and seconds of work; a process that works for more than `limit` seconds, or lasts for more than `duration`, is
        ended and has failed. Nor do its children last longer."""
        root = os.path.join(self.runfiles, "occl")
        env = {"PATH": os.environ["PATH"], "HOME": scratch, "TEST_SRCDIR": self.runfiles, "RUNFILES_DIR": self.runfiles,
               "TEST_WORKSPACE": "occl", "TEST_TMPDIR": scratch, "GTEST_FAIL_FAST": "1", "OCCL_TEST_UNTIL_FAILURE": "true", **env}
        if self.filter:
            env["GTEST_FILTER"] = self.filter
        env.update((name, value) for name, value in os.environ.items() if name.startswith(PASSED_ON))
        folder, command = root, command or self.command
        if self.script:
            text, path, old = self.script
            path = os.path.join(scratch, path)
            os.makedirs(os.path.dirname(path))
            with open(path, "w", encoding="utf-8") as file:
                file.write(text.replace(old, scratch))
            folder, command = os.path.dirname(os.path.dirname(path)), ["bash", path]
            env["PATH"] = os.pathsep.join([os.path.join(root, tool) for tool in TOOLS] + [env["PATH"]])
            env["FILECHECK_OPTS"] = "-enable-var-scope"
        # Seconds of work rather than of the clock, as the machine may be loaded; but who sleeps for ever does not work.
        process = subprocess.Popen(["/bin/sh", "-c", f'ulimit -t {limit}; exec "$0" "$@"', *command], cwd=folder, env=env,
                                   start_new_session=True, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        late = threading.Timer(duration, os.killpg, (process.pid, signal.SIGKILL))
        late.start()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        late.cancel()
        os.killpg(process.pid, signal.SIGKILL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        return process.returncode, usage.ru_utime + usage.ru_stime

    def passes(self, mutant):
        with tempfile.TemporaryDirectory() as scratch:
            return self.run(scratch, {"OCCL_MUTANT": mutant}, 5 + int(5 * self.seconds), 60 + 5 * self.duration)[0] == 0

    def output(self, mutant, args):
        """What it prints with other arguments."""
        with tempfile.TemporaryDirectory() as scratch, tempfile.TemporaryFile() as output:
            self.run(scratch, {"OCCL_MUTANT": mutant}, 600, 3600, [self.command[0], *args], output)
            output.seek(0)
            return output.read().decode(errors="replace")

    def learn(self):
        """Runs it without a mutant, to see which it asks for."""
        with tempfile.TemporaryDirectory() as scratch, tempfile.TemporaryFile() as output:
            trace = os.path.join(scratch, "asked")
            begin = time.monotonic()
            status, self.seconds = self.run(scratch, {"OCCL_MUTANT_TRACE": trace}, 600, 3600, output=output)
            self.duration = time.monotonic() - begin
            if status != 0:
                output.seek(0)
                raise MutantError(f"{self.label} fails without any mutant:\n{output.read()[-4000:].decode(errors='replace')}")
            if os.path.exists(trace):
                with open(trace, encoding="utf-8") as file:
                    self.asked = set(file.read().split())
            for path in glob.glob(os.path.join(scratch, "**/*.script"), recursive=True):
                with open(path, encoding="utf-8") as file:
                    self.script = file.read(), os.path.relpath(path, scratch), scratch


def root_path(package, label):
    """The runfile of a label."""
    if not label.startswith("//"):
        return f"{package}/{label.lstrip(':')}"
    path, _, name = label[2:].partition(":")
    return os.path.join(path, name or os.path.basename(path))


def trace(tests, jobs):
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        list(pool.map(Test.learn, tests))


class Bazel:
    """A copy of the tree."""

    def __init__(self, folder):
        self.folder = folder

    @staticmethod
    def known_files(root):
        names = subprocess.run(["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"], capture_output=True,
                               check=True).stdout
        return names.decode().rstrip("\0").split("\0")

    def _run(self, *arguments, **options):
        return subprocess.run([os.path.join(self.folder, "tools/dev/bazel.sh"), *arguments], cwd=self.folder, check=False, **options)

    def build(self, patterns, others):
        """Builds the tests of the patterns, which are the usual ones, and others."""
        labels = sorted({other.partition("=")[0] for other in others})
        query = self._run("query", "--output=xml", f"tests({' + '.join([*patterns, *labels])})", capture_output=True)
        if query.returncode:
            raise MutantError(f"bazel query: {query.stderr.decode()}")
        tests = []
        for rule in xml.etree.ElementTree.fromstring(query.stdout).iter("rule"):
            args = [value.get("value") for value in rule.findall("list[@name='args']/string")]
            label = rule.get("name")
            if label not in labels or label in patterns:
                tests.append(Test(self.folder, label, args))
            tests += [Test(self.folder, other, args, False) for other in sorted(others) if other.partition("=")[0] == label]
        # Libraries are linked statically, so that each source is compiled once.
        if self._run("build", "--keep_going", "--dynamic_mode=off", *sorted({test.label for test in tests})).returncode:
            raise MutantError("the mutants do not compile")
        return tests
