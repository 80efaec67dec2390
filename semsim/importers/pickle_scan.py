"""Looking through a pickle before it is opened: what it would cost, by its opcodes alone.

A few bytes can ask for gigabytes (a place in the memo, the length of a text), or build a value that
holds itself twice at every level, which takes for ever to hash or to write out. `pickletools` says
of each opcode what it takes from the stack and puts there; with that, depths and sizes are counted
here without making a single value.
"""

import io
import pickle
import pickletools
from collections.abc import Iterator
from dataclasses import dataclass, field

DEEPEST = 100  # containers within one another
LONGEST_NUMBER = 1024  # bits
# Parts of all values together, those that are meant twice counted twice: some for every file, and
# some for each opcode, as honest pickles mean few values more than once.
FREE_PARTS, PARTS_PER_OPCODE = 100_000, 20

_FRAME = 9  # bytes of the opcode and its length
_GROWING = {"APPEND", "APPENDS", "SETITEM", "SETITEMS", "ADDITEMS", "BUILD"}
_PUTTING = {"PUT", "BINPUT", "LONG_BINPUT"}
_GETTING = {"GET", "BINGET", "LONG_BINGET"}


@dataclass(eq=False)
class _Value:
    """What is on the stack. parts: of it and all within; held: whether another value has it."""

    depth: int = 0
    parts: int = 1
    held: bool = False


_MARK = _Value()


@dataclass
class _Scan:
    stack: list[_Value] = field(default_factory=list)
    memo: dict[int, _Value] = field(default_factory=dict)
    opcodes: int = 0
    parts: int = 0

    def step(self, opcode: pickletools.OpcodeInfo, argument: object) -> None:
        self.opcodes += 1
        name = opcode.name
        if name in _PUTTING:
            self._put(argument)
        elif name == "MEMOIZE":
            self._put(len(self.memo))
        elif name in _GETTING:
            self._get(argument)
        elif name == "DUP":
            self.stack.append(self._top())
        elif name == "MARK":
            self.stack.append(_MARK)
        else:
            self._replace(opcode)

    def _put(self, place: object) -> None:
        # Honest pickles number the memo from 0 or 1 on; the parser makes room up to the number.
        if not isinstance(place, int) or not 0 <= place <= self.opcodes:
            raise _refused(f"place {place} of its memo, which holds {len(self.memo)}")
        self.memo[place] = self._top()

    def _get(self, place: object) -> None:
        if not isinstance(place, int) or place not in self.memo:
            raise _refused(f"place {place} of its memo, where nothing is")
        self.stack.append(self.memo[place])

    def _top(self) -> _Value:
        if not self.stack:
            raise _refused("a value where there is none")
        return self.stack[-1]

    def _replace(self, opcode: pickletools.OpcodeInfo) -> None:
        taken = list(self._taken(opcode))
        if opcode.name in _GROWING:
            grown, *added = taken
            if grown.held or any(value is grown for value in added):
                raise _refused("a change of a value that another one, or itself, holds")
            self._add(grown, added)
            self.stack.append(grown)
            return
        for _ in opcode.stack_after:
            made = _Value()
            self.parts += 1
            self._add(made, taken)
            self.stack.append(made)

    def _taken(self, opcode: pickletools.OpcodeInfo) -> Iterator[_Value]:
        """What an opcode takes from the stack, the lowest first."""
        count = len(opcode.stack_before)
        if pickletools.markobject in opcode.stack_before:
            above = next((n for n, one in enumerate(reversed(self.stack)) if one is _MARK), None)
            if above is None:
                raise _refused("a mark where there is none")
            count = above + 1 + opcode.stack_before.index(pickletools.markobject)
        if count > len(self.stack):
            raise _refused("a value where there is none")
        taken = self.stack[len(self.stack) - count :]
        del self.stack[len(self.stack) - count :]
        return (value for value in taken if value is not _MARK)

    def _add(self, holder: _Value, added: list[_Value]) -> None:
        for value in added:
            value.held = True
            holder.depth = max(holder.depth, value.depth + 1)
            holder.parts += value.parts
            self.parts += value.parts
        if holder.depth > DEEPEST:
            raise _refused(f"more than {DEEPEST} values within one another")
        if self.parts > FREE_PARTS + PARTS_PER_OPCODE * self.opcodes:
            raise _refused("too many values that are meant more than once")


def check(raw: bytes) -> None:
    """`UnpicklingError` for a pickle that costs far more than its bytes; ValueError for none."""
    scan = _Scan()
    # Reading from bytes, `genops` itself says where a length goes beyond the end.
    for opcode, argument, place in pickletools.genops(io.BytesIO(raw)):
        left = len(raw) - (place or 0) - _FRAME
        if opcode.name == "FRAME" and isinstance(argument, int) and argument > left:
            raise _refused(f"{argument} bytes where {left} are left")
        if isinstance(argument, int) and argument.bit_length() > LONGEST_NUMBER:
            raise _refused(f"a number of more than {LONGEST_NUMBER} bits")
        scan.step(opcode, argument)


def _refused(what: str) -> pickle.UnpicklingError:
    return pickle.UnpicklingError(f"the pickle asks for {what}")
