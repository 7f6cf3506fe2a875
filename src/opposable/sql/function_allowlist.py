"""The functions that a query may call, by dialect."""

from typing import Literal

from opposable.sql.clickhouse_functions import CLICKHOUSE_FUNCTIONS, CLICKHOUSE_KEYWORDS, CLICKHOUSE_TABLE_FUNCTIONS
from opposable.sql.mysql_functions import MYSQL_FUNCTIONS, MYSQL_KEYWORDS, MYSQL_TABLE_FUNCTIONS

Dialect = Literal["duckdb", "sqlite", "postgres", "mysql", "clickhouse"]

_SQLITE_NAMES = """abs acos acosh asin asinh atan atan2 atanh avg bm25 ceil ceiling changes char coalesce concat concat_ws cos cosh
    count cume_dist current_date current_time current_timestamp date datetime degrees dense_rank exp first_value floor
    format glob group_concat hex highlight ifnull iif instr json json_array json_array_length json_error_position
    json_extract json_group_array json_group_object json_insert json_object json_patch json_pretty json_quote
    json_remove json_replace json_set json_type json_valid jsonb jsonb_array jsonb_extract jsonb_group_array
    jsonb_group_object jsonb_insert jsonb_object jsonb_patch jsonb_remove jsonb_replace jsonb_set julianday lag last_value lead length like likelihood likely
    ln log log10 log2 lower ltrim match max median min mod nth_value ntile nullif octet_length offsets percent_rank percentile
    percentile_cont percentile_disc pi pow power printf quote radians random randomblob rank regexp replace round row_number rtrim
    sign sin sinh snippet soundex sqlite_version sqrt strftime string_agg substr substring sum tan tanh time timediff total trim trunc
    typeof unhex unicode unistr unixepoch unlikely upper zeroblob if"""
SQLITE_FUNCTIONS = frozenset(_SQLITE_NAMES.split())
SQLITE_TABLE_FUNCTIONS = frozenset({"json_each", "json_tree"})

_DUCKDB_AGGREGATES = """any_value approx_count_distinct approx_quantile approx_top_k arbitrary arg_max arg_max_null
    arg_max_nulls_last arg_min arg_min_null arg_min_nulls_last argmax argmin array_agg avg bit_and bit_or bit_xor
    bitstring_agg bool_and bool_or corr count count_if count_star countif covar_pop covar_samp entropy favg first fsum
    geomean geometric_mean group_concat histogram histogram_exact kahan_sum kurtosis kurtosis_pop last list listagg mad
    max max_by mean median min min_by mode product quantile quantile_cont quantile_disc percentile_cont percentile_disc
    regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy reservoir_quantile sem
    skewness stddev stddev_pop stddev_samp string_agg sum sum_no_overflow sumkahan var_pop var_samp variance wavg
    weighted_avg json_group_array json_group_object json_group_structure grouping grouping_id"""
_DUCKDB_WINDOW = """cume_dist dense_rank fill first_value lag last_value lead nth_value ntile percent_rank rank
    rank_dense row_number"""
_DUCKDB_NUMBERS = """abs acos acosh add asin asinh atan atan2 atanh bin bit_count cbrt ceil ceiling cos cosh cot degrees
    divide even exp factorial fdiv floor fmod gamma gcd greatest greatest_common_divisor isfinite isinf isnan lcm least
    least_common_multiple lgamma ln log log10 log2 mod multiply nextafter pi pow power radians random round round_even
    roundbankers sign signbit sin sinh sqrt subtract tan tanh to_base trunc xor equi_width_bins width_bucket setseed"""
_DUCKDB_TEXT = """ascii array_extract bar base64 bit_length bitstring char_length character_length chr concat concat_ws
    contains damerau_levenshtein decode editdist3 encode ends_with format formatreadabledecimalsize formatreadablesize
    format_bytes from_base64 from_binary from_hex hamming hash hex ilike_escape instr jaccard jaro_similarity
    jaro_winkler_similarity lcase left left_grapheme len length length_grapheme levenshtein like_escape lower lpad ltrim
    md5 md5_number mismatches nfc_normalize not_ilike_escape not_like_escape octet_length ord overlay parse_filename
    parse_path pg_size_pretty position prefix printf quote regexp_escape regexp_extract regexp_extract_all
    regexp_full_match regexp_matches regexp_replace regexp_split_to_array regexp_split_to_table repeat replace reverse
    right right_grapheme rpad rtrim sha1 sha256 split split_part starts_with str_split str_split_regex string_split
    string_split_regex string_to_array strip_accents strlen strpos substr substring substring_grapheme suffix to_base64
    to_binary to_hex translate trim ucase unbin unhex unicode upper url_decode url_encode array_to_string collate"""
_DUCKDB_TIME = """age ago century current_date current_localtime current_localtimestamp current_time current_timestamp
    date date_add date_diff date_part date_sub date_trunc datediff datepart datesub datetrunc day dayname dayofmonth
    dayofweek dayofyear days_in_month decade epoch epoch_ms epoch_ns epoch_us era extract get_current_time
    get_current_timestamp hour isodow isoyear julian last_day localtime localtimestamp make_date make_time
    make_timestamp make_timestamp_ms make_timestamp_ns make_timestamptz microsecond millennium millisecond minute month
    monthname nanosecond normalized_interval now quarter second strftime strptime time time_bucket timestamp
    timestamptz timezone timezone_hour timezone_minute to_centuries to_days to_decades to_hours to_microseconds
    to_millennia to_milliseconds to_minutes to_months to_quarters to_seconds to_timestamp to_weeks to_years today
    transaction_timestamp try_strptime week weekday weekofyear year yearweek interval"""
_DUCKDB_NESTED = """aggregate apply array_aggr array_aggregate array_append array_apply array_cat array_concat
    array_contains array_cosine_distance array_cosine_similarity array_cross_product array_distance array_distinct
    array_dot_product array_filter array_grade_up array_has array_has_all array_has_any array_indexof
    array_inner_product array_intersect array_length array_negative_dot_product array_negative_inner_product
    array_pop_back array_pop_front array_position array_prepend array_push_back array_push_front array_reduce array_resize
    array_reverse array_reverse_sort array_select array_slice array_sort array_transform array_unique array_value
    array_where array_zip cardinality element_at filter flatten generate_series grade_up list_aggr list_aggregate
    list_any_value list_append list_apply list_approx_count_distinct list_avg list_bit_and list_bit_or list_bit_xor
    list_bool_and list_bool_or list_cat list_concat list_contains list_cosine_distance list_cosine_similarity
    list_count list_distance list_distinct list_dot_product list_element list_entropy list_extract list_filter
    list_first list_grade_up list_has list_has_all list_has_any list_histogram list_indexof list_inner_product
    list_intersect list_kurtosis list_kurtosis_pop list_last list_mad list_max list_median list_min list_mode
    list_negative_dot_product list_negative_inner_product list_pack list_position list_prepend list_product
    list_reduce list_resize list_reverse list_reverse_sort list_select list_sem list_skewness list_slice list_sort
    list_stddev_pop list_stddev_samp list_string_agg list_sum list_transform list_unique list_value list_var_pop
    list_var_samp list_where list_zip map map_concat map_contains map_contains_entry map_contains_value map_entries
    map_extract map_extract_value map_from_entries map_keys map_values range reduce row struct struct_concat struct_contains
    struct_extract struct_extract_at struct_has struct_indexof struct_insert struct_keys struct_pack struct_position
    struct_update struct_values union_extract union_tag union_value unnest array generate_subscripts"""
_DUCKDB_JSON = """array_to_json from_json from_json_strict json json_array json_array_length json_contains json_deep_merge
    json_exists json_extract json_extract_path json_extract_path_text json_extract_string json_insert json_keys
    json_merge_patch json_normalize json_object json_pretty json_quote json_remove json_replace json_set
    json_strip_nulls json_structure json_transform json_transform_strict json_type json_valid json_value row_to_json
    to_json"""
_DUCKDB_OTHER = """alias all some can_cast_implicitly cast cast_to_type coalesce columns constant_or_null enum_code enum_first
    enum_last enum_range enum_range_boundary error exists gen_random_uuid get_bit get_type if ifnull iif isnull nullif
    set_bit bit_position switch try try_cast typeof uuid uuid_extract_timestamp uuid_extract_version uuidv4 uuidv7
    version fill_null lttb parse_dirname parse_dirpath parse_formatted_bytes path_join pg_typeof st_asbinary st_asgeojson st_astext
    st_aswkb st_aswkt st_crs st_geomfromgeojson st_geomfromwkb st_intersects_extent st_setcrs unpivot_list
    variant_array_length variant_contains variant_exists variant_extract variant_extract_string variant_keys variant_type
    variant_typeof is_histogram_other_bin version current_database current_schema current_schemas binom invoke json_merge_patch_diff"""

_DUCKDB_GROUPS = (
    _DUCKDB_AGGREGATES,
    _DUCKDB_WINDOW,
    _DUCKDB_NUMBERS,
    _DUCKDB_TEXT,
    _DUCKDB_TIME,
    _DUCKDB_NESTED,
    _DUCKDB_JSON,
    _DUCKDB_OTHER,
)
DUCKDB_FUNCTIONS = frozenset(name for names in _DUCKDB_GROUPS for name in names.split())
DUCKDB_TABLE_FUNCTIONS = frozenset({"range", "generate_series", "unnest", "json_each", "json_tree", "repeat_row"})

_POSTGRES_AGGREGATES = """any_value array_agg avg bit_and bit_or bit_xor bool_and bool_or corr count covar_pop covar_samp every grouping
    json_agg json_agg_strict json_arrayagg json_object_agg json_object_agg_strict json_object_agg_unique
    json_object_agg_unique_strict json_objectagg jsonb_agg jsonb_agg_strict jsonb_object_agg jsonb_object_agg_strict
    jsonb_object_agg_unique jsonb_object_agg_unique_strict max min
    mode percentile_cont percentile_disc range_agg range_intersect_agg regr_avgx regr_avgy regr_count regr_intercept regr_r2
    regr_slope regr_sxx regr_sxy regr_syy stddev stddev_pop stddev_samp string_agg sum var_pop var_samp variance cume_dist
    dense_rank first_value lag last_value lead nth_value ntile percent_rank rank row_number"""
_POSTGRES_NUMBERS = """abs acos acosd acosh asin asind asinh atan atan2 atan2d atand atanh cbrt ceil ceiling cos cosd cosh cot cotd
    degrees div erf erfc exp factorial floor gamma gcd lcm lgamma ln log log10 min_scale mod pi power radians random
    random_normal round scale sign sin sind sinh sqrt tan tand tanh trim_scale trunc width_bucket float4 float8 int2 int4
    int8 numeric"""
_POSTGRES_TEXT = """ascii bit_count bit_length btrim casefold char_length character_length chr concat concat_ws convert_from convert_to
    crc32 crc32c decode difference encode format get_bit get_byte initcap left length levenshtein lower lpad ltrim md5
    metaphone normalize octet_length overlay parse_ident position quote_ident quote_literal quote_nullable regexp_count
    regexp_instr regexp_like regexp_match regexp_matches regexp_replace regexp_split_to_array regexp_split_to_table
    regexp_substr repeat replace reverse right rpad rtrim sha224 sha256 sha384 sha512 similarity soundex split_part
    starts_with string_to_array string_to_table strpos substr substring text to_ascii to_bin to_hex to_oct translate trim
    unaccent unistr upper word_similarity strict_word_similarity"""
_POSTGRES_TIME = """age clock_timestamp current_date current_time current_timestamp date date_add date_bin date_part date_subtract
    date_trunc extract interval isfinite justify_days justify_hours justify_interval localtime localtimestamp make_date
    make_interval make_time make_timestamp make_timestamptz now overlaps statement_timestamp time timeofday timestamp
    timestamptz timezone to_char to_date to_number to_timestamp transaction_timestamp"""
_POSTGRES_NESTED = """array_append array_cat array_dims array_fill array_length array_lower array_ndims array_position array_positions
    array_prepend array_remove array_replace array_reverse array_sample array_shuffle array_sort array_to_json
    array_to_string array_upper cardinality isempty json json_array json_array_elements json_array_elements_text
    json_array_length json_build_array json_build_object json_each json_each_text json_exists json_table
    trim_array jsonb_path_exists_tz jsonb_path_query_array_tz jsonb_path_query_first_tz jsonb_path_query_tz json_extract_path
    json_extract_path_text json_object json_object_keys json_populate_record json_populate_recordset json_query
    json_scalar json_serialize json_strip_nulls json_to_record json_to_recordset json_typeof json_value jsonb
    jsonb_array_elements jsonb_array_elements_text jsonb_array_length jsonb_build_array jsonb_build_object jsonb_each
    jsonb_each_text jsonb_extract_path jsonb_extract_path_text jsonb_insert jsonb_object jsonb_object_keys
    jsonb_contained jsonb_contains jsonb_exists jsonb_exists_all jsonb_exists_any jsonb_path_exists jsonb_path_match jsonb_path_query jsonb_path_query_array jsonb_path_query_first
    jsonb_path_match_tz jsonb_populate_record jsonb_populate_record_valid jsonb_populate_recordset jsonb_to_tsvector json_to_tsvector jsonb_pretty jsonb_set jsonb_set_lax jsonb_strip_nulls jsonb_to_record jsonb_to_recordset
    jsonb_typeof lower_inc lower_inf range_merge row row_to_json to_json to_jsonb upper_inc upper_inf daterange int4range
    int8range numrange tsrange tstzrange multirange datemultirange int4multirange int8multirange nummultirange tsmultirange
    tstzmultirange unnest hstore akeys avals skeys svals each"""
_POSTGRES_OTHER = """all some cast coalesce exists gen_random_uuid generate_series generate_subscripts get_current_ts_config greatest least
    nullif num_nonnulls num_nulls numnode phraseto_tsquery plainto_tsquery querytree setweight strip to_tsquery to_tsvector
    ts_headline ts_rank ts_rank_cd websearch_to_tsquery uuidv4 uuidv7 uuid_extract_timestamp uuid_extract_version
    merge_action enum_first enum_last enum_range abbrev broadcast family host hostmask inet_merge inet_same_family masklen
    netmask network set_masklen array_to_tsvector ts_delete ts_filter ts_lexize tsquery_phrase tsvector_to_array
    pg_typeof pg_size_pretty pg_column_size current_database current_schema version is_normalized set_bit set_byte pow area bool box bytea center cidr circle diagonal diameter height isclosed
    line lseg money npoints path point polygon radius slope timetz width st_area st_asgeojson st_astext
    st_buffer st_centroid st_contains st_distance st_dwithin st_geomfromtext st_intersects st_length st_makepoint
    st_point st_setsrid st_transform st_within st_x st_y bit bound_box bpchar cash_words hashtext varbit varchar
    ishorizontal isopen isparallel isperp isvertical macaddr oid pclose pg_size_bytes popen unicode_assigned
    hashint4 hashint8 hashint8extended hashtextextended like_escape convert pg_client_encoding pg_column_compression
    pg_collation_for pg_input_error_info pg_input_is_valid pg_indexes_size pg_relation_size pg_table_size pg_total_relation_size ts_debug ts_parse ts_token_type unicode_version"""
_POSTGRES_GROUPS = (
    _POSTGRES_AGGREGATES,
    _POSTGRES_NUMBERS,
    _POSTGRES_TEXT,
    _POSTGRES_TIME,
    _POSTGRES_NESTED,
    _POSTGRES_OTHER,
)
POSTGRES_FUNCTIONS = frozenset(name for names in _POSTGRES_GROUPS for name in names.split())
FUNCTIONS_BY_DIALECT: dict[str, frozenset[str]] = {
    "duckdb": DUCKDB_FUNCTIONS,
    "sqlite": SQLITE_FUNCTIONS,
    "postgres": POSTGRES_FUNCTIONS,
    "mysql": MYSQL_FUNCTIONS,
    "clickhouse": CLICKHOUSE_FUNCTIONS,
}
TABLE_FUNCTIONS_BY_DIALECT: dict[str, frozenset[str]] = {
    "postgres": POSTGRES_FUNCTIONS,
    "duckdb": DUCKDB_TABLE_FUNCTIONS,
    "sqlite": SQLITE_TABLE_FUNCTIONS,
    "mysql": MYSQL_TABLE_FUNCTIONS,
    "clickhouse": CLICKHOUSE_TABLE_FUNCTIONS,
}

_KEYWORDS = """all and any array as asof between by case cast check columns cross cube decimal distinct double else end escape
    except exclude exists extract filter following for from full group groups having ilike in inner intersect interval
    into is join key lateral left like limit map match materialized natural not numeric offset on or order outer over
    partition pivot positional preceding qualify range recursive regexp rename replace respect right rollup row rows
    select semi anti sets similar some struct then to try_cast unbounded union unpivot using values varchar nvarchar
    char character bit when where window with within time timestamp text float real integer int bigint blob glob name
    collate current ignore nulls grouping sample tablesample bernoulli reservoir system percent first last temporal
    number varying precision bpchar dec enum timestamptz symmetric asymmetric ordinality only repeatable zone placing
    variadic both leading trailing distance similarity"""
KEYWORDS_BEFORE_PARENTHESIS = frozenset(_KEYWORDS.split())
"""Keywords that may precede a parenthesis without a function call."""
KEYWORDS_BY_DIALECT: dict[str, frozenset[str]] = {
    "postgres": KEYWORDS_BEFORE_PARENTHESIS | {"operator"},
    "mysql": KEYWORDS_BEFORE_PARENTHESIS | MYSQL_KEYWORDS,
    "clickhouse": KEYWORDS_BEFORE_PARENTHESIS | CLICKHOUSE_KEYWORDS,
}
"""The keywords of the dialects that have more of them."""
