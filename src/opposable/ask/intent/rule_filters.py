"""Rules for filters and limits: values, named filters and numbers."""

from opposable.ask.intent import messages
from opposable.ask.intent.intent import MAX_LIMIT, IntentFilter, Operator
from opposable.ask.intent.rule_state import OPERATORS_AFTER_NUMBER, OPERATORS_BEFORE_NUMBER, SKIPPED_KINDS, RuleState
from opposable.ask.intent.time_expressions import CONSUMED_CHARACTER
from opposable.domain.localized_text import join_localized


def collect_filters(state: RuleState) -> None:
    """Add the filters of the question: the named filters and exclusions, then one for each dimension with values."""
    negated_positions = _find_negated_positions(state)
    values: dict[tuple[str, bool], dict[str, None]] = {}
    last_positions: dict[str, int] = {}
    for position, phrase in enumerate(state.phrases):
        is_negated = position in negated_positions
        is_between = all(state.has_neighbor(position, step, "value", "filter", "exclusion") for step in (-1, 1))
        joins_conditions = phrase.is_a("or") or (phrase.is_a("and") and is_between)
        filters, exclusions = phrase.get_ids("filter"), phrase.get_ids("exclusion")
        if position in state.metrics or position in state.dimensions:
            continue
        if exclusions and is_negated:
            state.exclusions.append(exclusions[0])
        elif filters:
            state.filters.append(IntentFilter(dimension=filters[0], value=not is_negated))
        elif phrase.is_a("value"):
            dimension = _choose_dimension(state, position)
            same = dict.fromkeys(m.value for m in phrase.meanings if m.kind == "value" and m.id == dimension)
            values.setdefault((dimension, is_negated), {}).update(same)
            if len(same) > 1:
                spellings = join_localized(map(repr, same), ", ", "、")
                state.assumptions.append(messages.SEVERAL_SPELLINGS.format(phrase=phrase.text, values=spellings))
            between = state.phrases[last_positions.get(dimension, position) + 1 : position]
            if between and not any(other.is_a("and", "or", "not", "not_after") for other in between):
                state.ambiguities.append(messages.UNCLEAR_OR)
            last_positions[dimension] = position
        elif exclusions:
            state.ambiguities.append(messages.EXCLUSION_ONLY.format(phrase=phrase.text))
        elif joins_conditions and not _joins_alternatives(state, position, negated_positions):
            state.ambiguities.append(messages.UNCLEAR_OR)
    for (dimension, is_negated), named in values.items():
        operators: tuple[Operator, Operator] = ("!=", "not in") if is_negated else ("=", "in")
        value_or_values = tuple(named) if len(named) > 1 else next(iter(named))
        operator = operators[len(named) > 1]
        state.filters.append(IntentFilter(dimension=dimension, value=value_or_values, operator=operator))


def _find_negated_positions(state: RuleState) -> set[int]:
    """Return the positions that a word such as "except" negates.

    The negation covers the next value, filter or exclusion, and the values of the same dimension that "and" joins to
    it. A negation of anything else is ambiguous, and so is one of several conditions, as in "excluding Ann in Berlin".
    """
    positions: set[int] = set()
    for position, phrase in enumerate(state.phrases):
        step = 1 if phrase.is_a("not") else -1
        if step < 0 and not phrase.is_a("not_after"):
            continue
        at = state.find_neighbor(position, step)
        if step > 0 and at is not None and describes_value(state, at, 1):
            at = state.find_neighbor(at, 1)
        is_condition = at is not None and state.is_at(at, "value", "filter", "exclusion")
        if at is None or not is_condition or precedes_time(state, min(at, position), max(at, position)):
            state.ambiguities.append(messages.UNCLEAR_NEGATION.format(word=phrase.text))
            continue
        dimensions = set(state.phrases[at].get_ids("value"))
        positions.add(at)
        while state.is_at(at + step, "and", "or") and dimensions & state.get_value_dimensions(at + 2 * step):
            at += 2 * step
            positions.add(at)
        skipped_kinds = SKIPPED_KINDS if dimensions else ()
        if state.has_neighbor(at, step, "value", "filter", skipped_kinds=skipped_kinds):
            state.ambiguities.append(messages.UNCLEAR_NEGATION.format(word=phrase.text))
    return positions


def describes_value(state: RuleState, position: int, step: int) -> bool:
    """Return whether a phrase is the dimension of the value after it (1), as in "city Berlin", or before it (-1)."""
    dimensions = set(state.phrases[position].get_ids("dimension"))
    return bool(dimensions & state.get_value_dimensions(state.find_neighbor(position, step)))


def precedes_time(state: RuleState, position: int, next_position: int | None) -> bool:
    """Return whether the time of the question is between two phrases, or after the first one without a second."""
    last = None if next_position is None else state.phrases[next_position].start
    return CONSUMED_CHARACTER in state.remaining_text[state.phrases[position].end : last]


def _joins_alternatives(state: RuleState, position: int, negated_positions: set[int]) -> bool:
    """Return whether the phrases around "or" are values of one dimension, or all left out."""
    before, after = state.find_neighbor(position, -1), state.find_neighbor(position, 1)
    dimensions = state.get_value_dimensions(before) & state.get_value_dimensions(after)
    return bool(dimensions) or {before, after} <= negated_positions


def _choose_dimension(state: RuleState, position: int) -> str:
    """Choose the dimension of a value that several dimensions contain: the one next to it. Otherwise it is ambiguous."""
    ids = state.phrases[position].get_ids("value")
    neighbors = [state.phrases[at] for step in (-1, 1) if (at := state.find_neighbor(position, step)) is not None]
    common_ids = [ref for neighbor in neighbors for ref in neighbor.get_ids("dimension") if ref in ids]
    if len(ids) > 1 and not common_ids:
        state.add_several_meanings(position, ids)
    return (*common_ids, *ids)[0]


def apply_numbers(state: RuleState) -> None:
    """Use each number as a limit ("top 5") or a bound ("more than 100"); a bound without a number is ambiguous."""
    for position, phrase in enumerate(state.phrases):
        if phrase.number is None:
            at = state.find_neighbor(position, 1 if phrase.is_a(*OPERATORS_BEFORE_NUMBER) else -1)
            is_bound = phrase.is_a(*OPERATORS_BEFORE_NUMBER, *OPERATORS_AFTER_NUMBER)
            if is_bound and (at is None or state.phrases[at].number is None):
                state.ambiguities.append(messages.UNCLEAR_BOUND.format(word=phrase.text))
            continue
        before, after = state.find_neighbor(position, -1), state.find_neighbor(position, 1)
        is_ranked = state.is_at(before, "top", "bottom", "most", "least") or state.is_at(after, "most", "least")
        is_row_count = isinstance(phrase.number, int) and 0 < phrase.number <= MAX_LIMIT
        is_limit = not (phrase.text.isdecimal() and 1900 <= phrase.number < 2100)  # not the customers of a year
        is_limit &= not (position and state.phrases[position - 1].text in ("最多", "最少"))  # at most, at least
        tables = ((before, OPERATORS_BEFORE_NUMBER), (after, OPERATORS_AFTER_NUMBER))
        operators = [(table[kind], at) for at, table in tables for kind in table if state.is_at(at, kind)]
        if operators:
            _add_bound(state, position, *operators[0])
        elif is_row_count and is_limit and not state.limit and (is_ranked or after in state.dimensions):
            state.limit = int(phrase.number)
        else:
            state.ambiguities.append(messages.UNCLEAR_NUMBER.format(number=phrase.text))


def _add_bound(state: RuleState, position: int, operator: Operator, operator_position: int | None) -> None:
    """Add the bound of the metric after a number, as in "more than 2 orders", or of the term before the operator.

    Before 的 and a metric, a number without a term before it may bound each row: then it is ambiguous. So are a bound
    of a growth or of a text, and one of a count after its name: "orders over 100" are orders of that amount.
    """
    first, last = sorted((position, operator_position or 0))
    before, after = state.find_neighbor(first, -1, ("stop", "of", "in")), state.find_neighbor(last, 1)
    target = state.metrics.get(after) if after is not None and state.phrases[after - 1].text != "的" else None
    is_unclear = state.is_compared
    if target is None and before is not None:
        target = state.metrics.get(before) or next(iter(state.dimensions.get(before, ())), None)
        is_unclear |= before in state.metrics and state.is_loose_count(before)
        is_unclear |= state.has_neighbor(before, -1, "group", "each")
    if target is None or is_unclear or target in state.text_dimensions:
        state.ambiguities.append(messages.UNCLEAR_NUMBER.format(number=state.phrases[position].text))
        return
    if before in state.dimensions and target in state.dimensions[before]:
        state.context_positions.append(before)
    state.filters.append(IntentFilter(dimension=target, value=state.phrases[position].number, operator=operator))
