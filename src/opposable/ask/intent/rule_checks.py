"""Rules that report what the other rules cannot express, or would have to guess."""

import re

from opposable.ask.intent import messages
from opposable.ask.intent.rule_filters import precedes_time
from opposable.ask.intent.rule_state import BOUND_KINDS, ORDER_KINDS, QUANTITY_WORDS, SKIPPED_KINDS, RuleState


def flag_unsupported(state: RuleState) -> None:
    """Report the parts of the question that the rules recognize but cannot express."""
    state.flag_if(not state.metrics and state.has_phrase("total"), messages.MISSING_COUNT_TARGET)
    if not state.metrics and (not state.groups or state.has_phrase("group", "each") or not _is_list_clear(state)):
        state.ambiguities.append(messages.MISSING_METRIC)
    compares_values = any(isinstance(condition.value, tuple) for condition in state.filters)
    selects_groups = any(state.is_at(at - 1, "of") and state.is_at(at - 2, "change") for at in state.dimensions)
    is_change_clear = state.is_compared and not (compares_values or selects_groups or state.has_phrase("which"))
    state.flag_if(not is_change_clear and state.has_phrase("change", "compare"), messages.MISSING_BASELINE)
    is_ranked = state.limit is not None or state.has_phrase("most", "least", "top", "bottom")
    group_count = len(state.groups) + state.has_time_groups
    state.flag_if(is_ranked and (group_count > 1 or _is_best_of_each(state)), messages.BEST_WITHIN_GROUPS)
    may_aggregate = is_ranked and group_count and not state.has_phrase("apart", "each")
    for position, phrase in enumerate(state.phrases):
        if may_aggregate and _is_aggregate_of_groups(state, position):
            state.ambiguities.append(messages.UNCLEAR_PHRASE.format(phrase=phrase.text))
        if phrase.is_a("group", "each") and not _has_group_after(state, position):
            after = state.find_neighbor(position, 1)
            group = phrase if after is None else state.phrases[after]
            state.ambiguities.append(messages.UNCLEAR_GROUPING.format(dimension=group.text))
    is_bound_clear = group_count and not (state.groups and state.has_time_groups)
    if not is_bound_clear and any(condition.dimension in state.model.metrics for condition in state.filters):
        state.ambiguities.append(messages.BOUND_WITHOUT_GROUPS)


def _is_list_clear(state: RuleState) -> bool:
    """Return whether a list has texts of what "which" asks for, and no negation of some rows of a group, or of all."""
    terms = state.model.dimensions | state.model.exclusions
    tables = {state.model.dimensions[group].table for group in state.groups}
    negated = [f.dimension for f in state.filters if f.value is False or f.operator in ("!=", "not in")]
    is_negation_clear = all(ref in terms and terms[ref].table in tables for ref in (*negated, *state.exclusions))
    is_one = len(state.groups) == 1 or not state.has_phrase("which")
    return is_one and is_negation_clear and state.text_dimensions.issuperset(state.groups)


def _is_best_of_each(state: RuleState) -> bool:
    """Return whether a metric by groups is the best one, as in "highest cost per city": of each city, or of all?"""
    each = [at for at, phrase in enumerate(state.phrases) if phrase.is_a("group", "each")]
    best = [at for at, phrase in enumerate(state.phrases) if phrase.is_a("most", "least", "top", "bottom")]
    is_best = any({*state.dimensions}.isdisjoint(range(at, end)) for at in best for end in state.metrics if at < end)
    is_best |= state.has_phrase("each") and state.has_phrase("most", "least")
    return is_best and (state.is_each_period or any(state.find_neighbor(at, 1) in state.dimensions for at in each))


def _is_aggregate_of_groups(state: RuleState, position: int) -> bool:
    """Return whether a word or metric such as "total" or "average" neither ranks groups nor precedes "by" and theirs."""
    text = state.phrases[position].text.lower()
    is_aggregate = position in state.metrics and re.search(r"\b(total|average|mean)\b|总|合计|均", text)
    end = position + 1 if position + 1 in state.metrics else position
    is_ranked = state.has_neighbor(end, 1, *ORDER_KINDS, skipped_kinds=("stop",))
    is_grouped = state.is_at(end + 1, "group") and not state.has_neighbor(end + 1, 1, *ORDER_KINDS)
    belongs_to_groups = is_ranked or is_grouped or state.has_neighbor(position, -1, "group", *ORDER_KINDS)
    return bool(state.is_at(position, "total") or is_aggregate) and not belongs_to_groups


def _has_group_after(state: RuleState, position: int) -> bool:
    """Return whether a word such as "by" or "each" precedes a group of the rows, or what ranks or bounds groups."""
    after = state.find_neighbor(position, 1)
    if state.has_time_groups and precedes_time(state, position, after):
        return True
    is_group = after is not None and not set(state.groups).isdisjoint(state.dimensions.get(after, ()))
    is_order = after in state.metrics or state.is_at(after, "count", *ORDER_KINDS)
    return is_group or (bool(state.groups) and is_order and state.is_at(position, "group"))


def flag_guesses(state: RuleState) -> None:
    """Report words that have a likely meaning but not the only one."""
    for position, phrase in enumerate(state.phrases):
        state.flag_if(phrase.is_contested, messages.UNCLEAR_PHRASE.format(phrase=phrase.text))
        state.flag_if(phrase.is_a("count") and not _is_count_clear(state, position), messages.MISSING_COUNT_TARGET)
        pooled = _find_pooled_dimensions(state, position) if phrase.is_a("and") else ()
        state.ambiguities += [messages.UNCLEAR_GROUPING.format(dimension=ref) for ref in pooled]
    for position, ref in state.metrics.items():
        if _is_list(state, position) or _is_ranked_by_size(state, position):
            state.ambiguities.append(messages.UNCLEAR_COUNT.format(metric=ref))
        state.flag_if(not _is_relation_clear(state, position), messages.UNCLEAR_RELATION.format(metric=ref))
        if state.time and len(times := _find_times(state, ref)) > 1:
            state.add_several_meanings(position, times)
    bounded = [condition.dimension for condition in state.filters if condition.operator in ("<", "<=")]
    bounded += state.metrics.values() if state.has_phrase("least", "bottom") else ()
    state.ambiguities += [messages.MISSING_GROUPS.format(metric=ref) for ref in bounded if _lacks_groups(state, ref)]


def _find_times(state: RuleState, ref: str) -> list[str]:
    """Return the times of the rows of a metric if they have a condition: "cancelled in May" is no time of the order."""
    table, terms = state.model.metrics[ref].table, state.model.dimensions | state.model.filters
    has_condition = any(f.dimension in terms and terms[f.dimension].table == table for f in state.filters)
    metrics = state.model.metrics.values() if has_condition and table else ()
    return sorted({metric.time for metric in metrics if metric.table == table})


def _lacks_groups(state: RuleState, ref: str) -> bool:
    """Return whether groups without rows, which have 0, are missing: those of a count, or of a sum by time or over another table."""
    metric = state.model.metrics.get(ref)
    is_sum = metric is not None and re.search(r"\bsum\b", metric.expr, re.IGNORECASE)
    tables = {state.model.dimensions[group].table for group in state.groups}
    return state.is_count_metric(ref) or bool(is_sum and metric and (state.has_time_groups or tables - {metric.table}))


def _is_count_clear(state: RuleState, position: int) -> bool:
    """Return whether "how many" and the like count a metric: not the periods of "how many days", not a sum."""
    skipped_kinds = (*SKIPPED_KINDS, "value", "filter", "exclusion", "apart")
    after = state.find_neighbor(position, 1, skipped_kinds)
    if after is None and state.phrases[position].text == "多少":
        return state.find_neighbor(position, -1, skipped_kinds) in state.metrics
    if after not in state.metrics or (state.has_time_groups and precedes_time(state, position, after)):
        return False
    return state.phrases[position].text == "多少" or state.is_count_metric(state.metrics[after])


def _find_pooled_dimensions(state: RuleState, position: int) -> set[str]:
    """Return the dimension of the values around "and" if they may each have their average or other aggregate."""
    exprs = [state.model.metrics[ref].expr for ref in state.metrics.values()]
    is_additive = all(re.match(r"(?is)\s*(sum|count)\b(?!.*/)", expr) for expr in exprs)
    listed = {f.dimension for f in state.filters if f.operator == "in" and not is_additive}.difference(state.groups)
    sides = [state.get_value_dimensions(state.find_neighbor(position, step)) for step in (-1, 1)]
    return listed & sides[0] & sides[1]


def _is_list(state: RuleState, position: int) -> bool:
    """Return whether the rows of a count may be asked for, as in "show the orders" and "customers in Berlin"."""
    is_grouped = bool(state.groups) or state.has_time_groups
    is_list = state.has_phrase("show", "which") or state.is_at(position, "dimension")
    return is_list and not is_grouped and not state.is_counted(position) and state.is_loose_count(position)


def _is_ranked_by_size(state: RuleState, position: int) -> bool:
    """Return whether a superlative may rank the rows of a count by size, as in "the highest order" and "top 3 orders"."""
    words = [phrase.text.lower() for phrase in state.phrases if phrase.is_a("most", "least")]
    before = state.phrases[position - 1]
    is_top = state.is_at(position - 1, "top", "bottom") or (before.number is not None and state.limit == before.number)
    return state.is_loose_count(position) and (is_top or not set(words) <= set(QUANTITY_WORDS))


def _is_relation_clear(state: RuleState, position: int) -> bool:
    """Return whether only "and" joins a metric to one before it, and "with" or "have" precedes no metric without a bound."""
    earlier = [at for at in state.metrics if at < position]
    between = state.phrases[max(earlier, default=position) + 1 : position]
    if earlier and (
        precedes_time(state, max(earlier), position)
        or not any(phrase.is_a("and") for phrase in between)
        or not all(phrase.is_a("and", "stop", "of", "total", "count") for phrase in between)
        or state.is_at(min(earlier) - 1, "value", "filter", "exclusion")
    ):
        return False
    is_bounded = state.has_neighbor(position, 1, *BOUND_KINDS, *ORDER_KINDS)
    return is_bounded or not state.has_neighbor(position, -1, "with", skipped_kinds=("stop", "of", "total", "in"))
