"""Arguments for calls of forged functions: varied, small, and near the places where variants differ."""

from random import Random

Argument = int | str | list[int]

_WORDS = ("cab", "bead", "Deed", "face", "Abba", "babe", "Cede", "dad", "Fade", "decaf")


def draw_arguments(takes: str, constants: tuple[int, int], random: Random) -> tuple[Argument, ...]:
    """One tuple of arguments for a function that takes `takes` and mentions `constants`."""
    arguments = [_draw(letter, constants, random) for letter in takes]
    if len(takes) == 2 and takes[0] == takes[1] and random.random() < 0.25:
        arguments[1] = arguments[0]
    if takes == "ss" and random.random() < 0.6:
        word = str(arguments[0])
        arguments[1] = word[:2] if random.random() < 0.5 else word[-2:]
    if takes == "iii":
        arguments[1], arguments[2] = sorted((_integer(constants, random), _integer(constants, random)))
        if random.random() < 0.3:
            arguments[0] = arguments[random.choice((1, 2))]
    return tuple(arguments)


def _integer(constants: tuple[int, int], random: Random) -> int:
    if random.random() < 0.3:
        return random.choice(constants) + random.choice((-1, 0, 1))
    return random.randint(-5, 9)


def _draw(letter: str, constants: tuple[int, int], random: Random) -> Argument:
    match letter:
        case "i":
            return _integer(constants, random)
        case "p":
            return random.randint(1, 9)
        case "x":
            length = random.randint(2, 5)
            if random.random() < 0.3:
                return [random.randint(1, 9) for _ in range(length)]
            return [_integer(constants, random) for _ in range(length)]
        case _:
            return random.choice(_WORDS)
