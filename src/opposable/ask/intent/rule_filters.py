"""Rules for filters and limits: values, named filters and numbers."""

from itertools import pairwise

from opposable.ask.intent import messages
from opposable.ask.intent.intent import MAX_LIMIT, IntentFilter, Operator
from opposable.ask.intent.lexicon import MeaningKind
from opposable.ask.intent.phrases import Phrase
from opposable.ask.intent.rule_state import OPERATORS_AFTER_NUMBER, OPERATORS_BEFORE_NUMBER, RuleState
from opposable.ask.intent.time_expressions import CONSUMED_CHARACTER
from opposable.domain.localized_text import join_localized


def collect_filters(state: RuleState) -> None:
    """Add the filters of the question: one for each dimension with values, then the named filters and exclusions."""
    negated_positions = _find_negated_positions(state)
    values: dict[tuple[str, bool], dict[str, None]] = {}
    named_filters: list[IntentFilter] = []
    last_metric = max(state.metrics, default=0)
    last_positions: dict[str, int] = {}
    for position, phrase in enumerate(state.phrases):
        is_negated = position in negated_positions
        is_between_values = all(state.has_neighbor(position, step, "value") for step in (-1, 1))
        joins_values = phrase.is_a("or") or (phrase.is_a("and") and is_between_values)
        filters, exclusions = phrase.get_ids("filter"), phrase.get_ids("exclusion")
        if position in state.metrics or position in state.dimensions:
            continue
        if phrase.is_a("value", "filter", "exclusion") and any(at < position < last_metric for at in state.metrics):
            state.ambiguities.append(messages.UNCLEAR_SCOPE.format(phrase=phrase.text))
        if exclusions and is_negated:
            state.exclusions.append(exclusions[0])
        elif filters:
            named_filters.append(IntentFilter(dimension=filters[0], value=not is_negated))
        elif phrase.is_a("value"):
            if position not in state.context_positions:
                dimension = _choose_dimension(state, position)
                value = next(m.value for m in phrase.meanings if m.kind == "value" and m.id == dimension)
                values.setdefault((dimension, is_negated), {})[value] = None
                between = state.phrases[last_positions.get(dimension, position) + 1 : position]
                if between and not any(other.is_a("and", "or", "not", "not_after") for other in between):
                    state.ambiguities.append(messages.UNCLEAR_OR)
                last_positions[dimension] = position
        elif exclusions:
            state.ambiguities.append(messages.EXCLUSION_ONLY.format(phrase=phrase.text))
        elif joins_values and not _joins_alternatives(state, position, negated_positions):
            state.ambiguities.append(messages.UNCLEAR_OR)
    for (dimension, is_negated), named in values.items():
        operators: tuple[Operator, Operator] = ("!=", "not in") if is_negated else ("=", "in")
        value_or_values = tuple(named) if len(named) > 1 else next(iter(named))
        state.filters.append(
            IntentFilter(dimension=dimension, value=value_or_values, operator=operators[len(named) > 1])
        )
    state.filters += named_filters


def _find_negated_positions(state: RuleState) -> set[int]:
    """Return the positions that a word such as "except" negates.

    The negation covers the next value, filter or exclusion, and those that "and" joins to it. A negation of anything
    else, such as a metric, a time or a bound, is ambiguous.
    """
    phrases = state.phrases
    positions: set[int] = set()
    unused_phrases: list[Phrase] = []
    opening_phrase: Phrase | None = None
    is_negating = False
    for position, phrase in enumerate(phrases):
        if phrase.is_a("not"):
            after = state.find_neighbor(position, 1)
            is_negating = not (precedes_time(state, position, after) or state.is_at(after, *OPERATORS_BEFORE_NUMBER))
            opening_phrase = phrase
            unused_phrases += [] if after is not None and phrases[after].is_unknown else [phrase]
        elif phrase.is_a("not_after"):
            before = phrases[position - 1] if position else phrase
            if before.is_a("value", "filter", "exclusion") and not precedes_time(state, position - 1, position):
                dimensions = set(before.get_ids("value"))
                for at in reversed(range(position)):
                    if at == position - 1 or not dimensions.isdisjoint(phrases[at].get_ids("value")):
                        positions.add(at)
                    elif not phrases[at].is_a("and", "or"):
                        break
            elif not before.is_unknown:
                unused_phrases.append(phrase)
        elif phrase.is_a("metric", "dimension"):
            is_negating = is_negating and describes_next_value(state, position)
        elif phrase.is_a("value", "filter", "exclusion"):
            if is_negating:
                positions.add(position)
                unused_phrases = [unused for unused in unused_phrases if unused is not opening_phrase]
            continuing_kinds: tuple[MeaningKind, ...] = ("and", "or")
            continuing_kinds += ("value",) if phrase.is_a("value") else ()
            is_negating = is_negating and any(other.is_a(*continuing_kinds) for other in phrases[position + 1 :][:1])
    for first, last in pairwise(sorted(positions)):
        between, ids = phrases[first + 1 : last], phrases[first].get_ids("value")
        is_joined = bool(between) and all(phrase.is_a("and", "or") for phrase in between)
        is_separate = is_joined or any(phrase.is_a("not", "not_after") for phrase in between)
        if not is_separate and set(ids).isdisjoint(phrases[last].get_ids("value")):  # not both, or neither?
            negations = (phrase for phrase in reversed(phrases[:first]) if phrase.is_a("not"))
            unused_phrases.append(next(negations, phrases[last]))
    state.ambiguities += [messages.UNCLEAR_NEGATION.format(word=phrase.text) for phrase in unused_phrases]
    return positions


def describes_next_value(state: RuleState, position: int) -> bool:
    """Return whether a phrase is the dimension of the value after it, as in "city Berlin"."""
    after = state.find_neighbor(position, 1)
    ids = state.phrases[after].get_ids("value") if after is not None else ()
    return not set(state.phrases[position].get_ids("dimension")).isdisjoint(ids)


def precedes_time(state: RuleState, position: int, next_position: int | None) -> bool:
    """Return whether the time of the question is between two phrases, or after the first one without a second."""
    last = None if next_position is None else state.phrases[next_position].start
    return CONSUMED_CHARACTER in state.remaining_text[state.phrases[position].end : last]


def _joins_alternatives(state: RuleState, position: int, negated_positions: set[int]) -> bool:
    """Return whether the phrases around "or" are values of one dimension, or all left out."""
    before, after = state.find_neighbor(position, -1), state.find_neighbor(position, 1)
    if before is None or after is None:
        return False
    dimensions = set(state.phrases[before].get_ids("value"))
    return {before, after} <= negated_positions or not dimensions.isdisjoint(state.phrases[after].get_ids("value"))


def _choose_dimension(state: RuleState, position: int) -> str:
    """Choose the dimension of a value that several dimensions contain.

    A dimension next to the value is preferred, then one that lists it, then the first declared.
    """
    ids = state.phrases[position].get_ids("value")
    if len(ids) == 1:
        return ids[0]
    for step in (-1, 1):
        neighbor = state.find_neighbor(position, step)
        neighbor_ids = state.phrases[neighbor].get_ids("dimension") if neighbor is not None else ()
        if common_ids := [dimension for dimension in ids if dimension in neighbor_ids]:
            return common_ids[0]
    value = next(m.value for m in state.phrases[position].meanings if m.kind == "value")
    listing = [dimension for dimension in ids if value in state.model.dimensions[dimension].values]
    chosen = (listing or sorted(ids, key=list(state.model.dimensions).index))[0]
    others = join_localized([dimension for dimension in ids if dimension != chosen], ", ", "、")
    text = state.phrases[position].text
    state.assumptions.append(messages.VALUE_CHOICE.format(phrase=text, chosen=chosen, others=others))
    return chosen


def apply_numbers(state: RuleState) -> None:
    """Use each number as a limit ("top 5") or a bound ("more than 100"); a bound without a number is ambiguous."""
    for position, phrase in enumerate(state.phrases):
        if phrase.number is None:
            step = 1 if phrase.is_a(*OPERATORS_BEFORE_NUMBER) else -1
            at = state.find_neighbor(position, step)
            is_bound = phrase.is_a(*OPERATORS_BEFORE_NUMBER, *OPERATORS_AFTER_NUMBER)
            if is_bound and (at is None or state.phrases[at].number is None):
                state.ambiguities.append(messages.UNCLEAR_BOUND.format(word=phrase.text))
            continue
        before, after = state.find_neighbor(position, -1), state.find_neighbor(position, 1)
        is_ranked = state.is_at(before, "top", "bottom", "most", "least") or state.is_at(after, "most", "least")
        is_row_count = isinstance(phrase.number, int) and 0 < phrase.number <= MAX_LIMIT
        operators = [operator for kind, operator in OPERATORS_BEFORE_NUMBER.items() if state.is_at(before, kind)]
        operators += [operator for kind, operator in OPERATORS_AFTER_NUMBER.items() if state.is_at(after, kind)]
        if operators:
            _add_bound(state, position, operators[0])
        elif is_row_count and not state.limit and (is_ranked or after in state.dimensions):
            state.limit = int(phrase.number)
            state.is_lowest_first = state.is_at(before, "bottom")
        else:
            state.ambiguities.append(messages.UNCLEAR_NUMBER.format(number=phrase.text))


def _add_bound(state: RuleState, position: int, operator: Operator) -> None:
    phrase = state.phrases[position]
    target = _find_bound_target(state, position)
    bounds_growth = target in state.model.metrics and state.is_compared
    operator_position = state.find_neighbor(position, -1) or 0
    bounds_total = state.is_at(operator_position - 1, "total") and operator_position - 2 not in state.metrics
    if target is None or bounds_growth or bounds_total:
        state.ambiguities.append(messages.UNCLEAR_NUMBER.format(number=phrase.text))
    if target is None:
        return
    if target in state.model.dimensions:
        state.context_positions += [i for i, ids in state.dimensions.items() if target in ids]
    state.filters.append(IntentFilter(dimension=target, value=phrase.number, operator=operator))


def _find_bound_target(state: RuleState, position: int) -> str | None:
    """Return the id that a number bounds.

    It is the metric after the number, the last term before it, or the first metric. A dimension that the rows are
    grouped by is not bounded. Before 的 and a metric the number may bound each row: then it must follow its term.
    """
    after = state.find_neighbor(position, 1)
    if after is not None and state.is_at(after, *OPERATORS_AFTER_NUMBER):
        after = state.find_neighbor(after, 1)
    is_attributive = after in state.metrics and state.phrases[after - 1].text == "的"
    if after in state.metrics and not is_attributive:
        return state.metrics[after]
    before = state.find_neighbor(position, -1)
    operator = before if state.is_at(before, *OPERATORS_BEFORE_NUMBER) else None
    candidates = [
        (i, metric)
        for i, metric in state.metrics.items()
        if i < position and (not is_attributive or state.find_neighbor(i, 1) == operator)
    ]
    candidates += [
        (i, ids[0])
        for i, ids in state.dimensions.items()
        if position - 4 < i < position
        and state.find_neighbor(i, 1) == operator
        and not state.has_neighbor(i, -1, "group", "each")
    ]
    first_metric = None if is_attributive else next(iter(state.metrics.values()), None)
    return max(candidates)[1] if candidates else first_metric
