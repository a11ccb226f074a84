"""Breaks a plan in each of several ways, and prints what `occlc verify` says of it.
usage: edit_plan.py <plan> <cases>; a line of <cases> is a name and Python statements on `plan`, the parsed JSON."""
import json
import subprocess
import sys

BLOCK = '     '


def lines(plan):
    """JSON with an instruction a line, as occlc writes it."""
    ranks = plan.pop('ranks')
    head = ''.join(f' "{key}": {json.dumps(value)},\n' for key, value in plan.items())
    texts = []
    for rank in ranks:
        blocks = ',\n'.join('    [\n' + ',\n'.join(BLOCK + json.dumps(step) for step in block) + '\n    ]'
                            for block in rank.pop('threadBlocks'))
        sizes = ''.join(f'   "{key}": {json.dumps(value)},\n' for key, value in rank.items())
        texts.append('  {\n' + sizes + '   "threadBlocks": [\n' + blocks + '\n   ]\n  }')
    return '{\n' + head + ' "ranks": [\n' + ',\n'.join(texts) + '\n ]\n}\n'


def main():
    base, cases = sys.argv[1:]
    for case in open(cases):
        name, statements = case.strip().split(': ', 1)
        plan = json.load(open(base))
        ranks = [rank['threadBlocks'] for rank in plan['ranks']]
        exec(statements, {'plan': plan, 'first': ranks[0], 'second': ranks[1]})
        path = name + '.plan.json'
        with open(path, 'w') as file:
            file.write(lines(plan))
        run = subprocess.run(['occlc', 'verify', path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        print(run.stdout, end='')
        assert run.returncode == 1, case


main()
