"""The functions that a query on MySQL or MariaDB may call."""

_AGGREGATES = """any_value avg bit_and bit_or bit_xor count cume_dist dense_rank first_value group_concat grouping json_arrayagg
    json_objectagg lag last_value lead max median min nth_value ntile percent_rank percentile_cont percentile_disc rank
    row_number std stddev stddev_pop stddev_samp sum var_pop var_samp variance"""
_NUMBERS = """abs acos asin atan atan2 bit_count ceil ceiling conv cos cot crc32 degrees exp floor format greatest least ln log
    log10 log2 mod pi pow power radians rand round sign sin sqrt tan truncate"""
_TEXT = """ascii bin bit_length char char_length character_length chr concat concat_ws convert elt export_set field find_in_set format_bytes from_base64
    hex initcap insert instr lcase left length lengthb locate lower lpad ltrim make_set match against md5 mid natural_sort_key oct octet_length ord
    position quote regexp_instr regexp_like regexp_replace regexp_substr repeat replace reverse right rpad rtrim sha sha1
    sha2 soundex space strcmp substr substring substring_index to_base64 to_char trim ucase unhex upper aes_decrypt
    aes_encrypt compress extractvalue sformat uncompress uncompressed_length vec_fromtext vec_totext"""
_TIME = """add_months adddate addtime convert_tz curdate current_date current_time current_timestamp curtime date date_add
    date_format date_sub datediff day dayname dayofmonth dayofweek dayofyear extract from_days from_unixtime get_format
    hour last_day localtime localtimestamp makedate maketime microsecond minute month monthname now period_add period_diff
    quarter sec_to_time second str_to_date subdate subtime sysdate time time_format time_to_sec timediff timestamp
    timestampadd timestampdiff to_days to_seconds unix_timestamp utc_date utc_time utc_timestamp week weekday weekofyear
    year yearweek"""
_JSON = """json_array json_array_append json_array_insert json_compact json_contains json_contains_path json_depth json_detailed
    json_equals json_exists json_extract json_insert json_keys json_length json_loose json_merge_patch json_merge_preserve
    json_normalize json_object json_overlaps json_pretty json_query json_quote json_remove json_replace json_search json_set
    json_table json_type json_unquote json_valid json_value column_json json_array_intersect json_merge json_schema_valid
    json_schema_validation_report json_storage_free json_storage_size json_object_filter_keys json_object_to_array"""
_SHAPES = """geometrycollection linestring mbrcontains mbrdisjoint mbrintersects mbroverlaps mbrtouches mbrwithin
    multilinestring multipoint multipolygon point polygon st_area st_asbinary st_asgeojson st_astext st_aswkb
    st_aswkt st_buffer st_centroid st_contains st_convexhull st_crosses st_difference st_dimension st_disjoint
    st_distance st_distance_sphere st_endpoint st_envelope st_equals st_exteriorring st_geometryn st_geometrytype
    st_geomfromgeojson st_geomfromtext st_geomfromwkb st_interiorringn st_intersection st_intersects st_isclosed
    st_isempty st_issimple st_latitude st_length st_linefromtext st_longitude st_numgeometries st_numinteriorrings
    st_numpoints st_overlaps st_pointfromtext st_pointn st_polyfromtext st_srid st_startpoint st_symdifference
    st_touches st_union st_within st_x st_y mbrcoveredby mbrcovers mbrequals st_collect st_frechetdistance st_geohash
    st_hausdorffdistance st_isring st_isvalid st_latfromgeohash st_lineinterpolatepoint st_longfromgeohash st_makeenvelope
    st_pointatdistance st_pointfromgeohash st_pointonsurface st_simplify st_swapxy st_transform st_validate"""
_OTHER = """bin_to_uuid cast charset coalesce collation column_check column_create column_exists column_get column_list
    current_user database exists if ifnull inet6_aton inet6_ntoa inet_aton inet_ntoa interval is_ipv4 is_ipv4_compat
    is_ipv4_mapped is_ipv6 is_uuid isnull nullif nvl nvl2 row schema user uuid uuid_to_bin version weight_string
    coercibility decode_oracle default json_key_value random_bytes session_user system_user values vec_distance_cosine
    crc32c current_role distance format_pico_time icu_version string_to_vector to_vector trim_oracle value
    vec_distance vec_distance_euclidean vector_dim vector_to_string"""
_VARIABLES = """autocommit character_set_client character_set_connection character_set_database character_set_results
    character_set_server collation_connection collation_database collation_server default_storage_engine
    default_week_format div_precision_increment group_concat_max_len lc_time_names lower_case_table_names
    max_allowed_packet max_connections sql_mode sql_select_limit system_time_zone time_zone transaction_isolation
    tx_isolation version version_comment"""
MYSQL_VARIABLES = frozenset(_VARIABLES.split())
"""Variables of the server that say how it reads and computes."""
MYSQL_FUNCTIONS = frozenset(f"{_AGGREGATES} {_NUMBERS} {_TEXT} {_TIME} {_JSON} {_SHAPES} {_OTHER}".split())
MYSQL_TABLE_FUNCTIONS = frozenset({"json_table"})
MYSQL_KEYWORDS = frozenset(
    {"binary", "columns", "datetime", "div", "index", "nchar", "nested", "of", "rlike", "signed", "unsigned", "xor"}
)
"""Keywords of MySQL that may precede a parenthesis."""
