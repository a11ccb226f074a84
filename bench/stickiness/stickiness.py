#!/usr/bin/env python3
"""Context switches and length of the task queue for each of ResNet-50's gradient all-reduces with one late rank, before and
after the stickiness adjustment: figure 9 of the OCCL paper. Prints a table; --csv writes the figures as rows for bench/report.py."""
import argparse
import collections
import os
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from reporting.parse import write_own_rows  # noqa: E402
from reporting.rows import Row  # noqa: E402

# What each of the compared runs asks the ranks for. Before: the newest first, as who fetches submissions eagerly has it, and every
# position in the queue polls as briefly as any. After, as the paper has it: first in, first out, and long at the front of the queue.
# No polling: the same order, one look a visit; the library's own choice for more ranks than processors.
POLICIES = {
    "before": ["--order", "newest", "--budget", "flat", "--spin-us", "1"],
    "after": ["--order", "fifo", "--budget", "front-heavy", "--spin-us", "20"],
    "no polling": ["--order", "fifo", "--budget", "no-polling"],
}
# A line of a rank's file.
Line = collections.namedtuple("Line", "iteration seconds collective preemptions vain_visits queue_length")


def compile_plans(occlc, algorithms, ranks, folder):
    plans = []
    for name, options in (("one_shot", ["--max-bytes", "16384"]), ("all_pairs", [])):
        plans.append(os.path.join(folder, name + ".plan.json"))
        subprocess.run([occlc, "compile", os.path.join(algorithms, name + ".coll"), "-D", f"ranks={ranks}", *options,
                        "-o", plans[-1]], check=True)
    return plans


def run(arguments, plans, policy, folder):
    """By rank, the rows of all iterations but the first."""
    output = os.path.join(folder, policy.replace(" ", "_"))
    command = [arguments.occl_run, "-n", str(arguments.ranks), "--", arguments.program, *POLICIES[policy], "--late-rank", str(arguments.late_rank), "--delay-us", str(arguments.delay_us),
               "--iterations", str(arguments.iterations + 1), "--output", output]
    for plan in plans:
        command += ["--plan", plan]
    subprocess.run(command, check=True)
    ranks = []
    for rank in range(arguments.ranks):
        with open(f"{output}.{rank}", encoding="utf-8") as lines:
            rows = [Line(int(i), float(s), *map(int, rest)) for i, s, *rest in map(str.split, lines)]
        ranks.append([row for row in rows if row.iteration > 0])
    return ranks


COLUMNS = (("preemptions", "preemptions"), ("vain_visits", "context switches"), ("queue_length", "length of the task queue"))


class Result:
    """What one policy did, over all rounds."""

    def __init__(self):
        self.rounds = []

    def seconds(self):
        """The slowest rank's time of each iteration."""
        times = []
        for ranks in self.rounds:
            by_iteration = collections.defaultdict(float)
            for row in (row for rows in ranks for row in rows):
                by_iteration[row.iteration] = max(by_iteration[row.iteration], row.seconds)
            times += by_iteration.values()
        return times

    def profile(self, rank, column):
        """By collective, the median over the iterations of what `rank` counted."""
        values = collections.defaultdict(list)
        for ranks in self.rounds:
            for row in ranks[rank]:
                values[row.collective].append(getattr(row, column))
        return [statistics.median(values[collective]) for collective in sorted(values)]


def shown_ranks(arguments):
    """A punctual rank and the late one, as in the paper."""
    return (0 if arguments.late_rank != 0 else 1, arguments.late_rank)


def table_values(arguments, results):
    """Who and what, the format of the numbers, and a number for each policy."""
    def row(who, what, value, text="{:.1f}"):
        return (who, what), text, [value(results[policy]) for policy in POLICIES]

    yield row("iteration", "ms, median", lambda result: statistics.median(result.seconds()) * 1e3)
    yield row("iteration", "ms, longest", lambda result: max(result.seconds()) * 1e3)
    for rank in shown_ranks(arguments):
        who = f"rank {rank}" + (", the late one" if rank == arguments.late_rank else "")
        for column, label in COLUMNS:
            yield row(who, f"{label}, mean of the collectives",
                      lambda result, rank=rank, column=column: statistics.mean(result.profile(rank, column)))
            yield row(who, f"{label}, most of a collective",
                      lambda result, rank=rank, column=column: max(result.profile(rank, column)), "{:.0f}")
    for rank in range(arguments.ranks):
        yield row(f"rank {rank}", "context switches of an iteration",
                  lambda result, rank=rank: sum(result.profile(rank, "vain_visits")), "{:.0f}")
    yield row("all ranks", "context switches of an iteration",
              lambda result: sum(sum(result.profile(rank, "vain_visits")) for rank in range(arguments.ranks)), "{:.0f}")


def table(arguments, results):
    lines = ["| | | " + " | ".join(POLICIES) + " |", "|---|---|" + "---:|" * len(POLICIES)]
    for label, number, values in table_values(arguments, results):
        lines.append("| " + " | ".join([*label, *(number.format(value) for value in values)]) + " |")
    return "\n".join(lines)


def figures(arguments, results):
    """The rows for bench/report.py: the table's, and by collective what is drawn."""
    for label, number, values in table_values(arguments, results):
        case, metric = label
        for policy, value in zip(POLICIES, values):
            yield Row(case, metric, "", number.format(value), ranks=str(arguments.ranks), way=policy)
    for rank in shown_ranks(arguments):
        who = f"rank {rank}" + (" (late)" if rank == arguments.late_rank else "")
        for column, metric in COLUMNS[1:]:
            for policy in POLICIES:
                profile = " ".join(f"{value:g}" for value in results[policy].profile(rank, column))
                yield Row(f"each collective, {who}", metric, "", profile, ranks=str(arguments.ranks), way=policy)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("occlc")
    parser.add_argument("occl_run")
    parser.add_argument("program", help="stickiness_rank")
    parser.add_argument("algorithms", help="folder of the all-reduce algorithms")
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--late-rank", type=int, default=2)
    parser.add_argument("--delay-us", type=int, default=100)
    parser.add_argument("--iterations", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--csv", help="writes the figures here, as rows for bench/report.py --add stickiness")
    arguments = parser.parse_args()
    results = {policy: Result() for policy in POLICIES}
    with tempfile.TemporaryDirectory() as folder:
        plans = compile_plans(arguments.occlc, arguments.algorithms, arguments.ranks, folder)
        for _ in range(arguments.rounds):
            for policy in POLICIES:
                results[policy].rounds.append(run(arguments, plans, policy, folder))
    print(table(arguments, results))
    if arguments.csv:
        write_own_rows(arguments.csv, list(figures(arguments, results)))


if __name__ == "__main__":
    main()
