"""The functions that a query on ClickHouse may call, in lower case."""

_AGGREGATES = """any any_value anyheavy anylast argmax argmin avg avgweighted corr count covarpop covarsamp entropy first_value
    grouparray grouparraysorted groupbitand groupbitor groupbitxor groupconcat groupuniqarray histogram kurtpop kurtsamp
    last_value max median medianexact min quantile quantileexact quantileexactweighted quantiles quantilesexact
    quantiletdigest quantiletiming simplelinearregression skewpop skewsamp stddevpop stddevsamp sum sumkahan summap
    sumwithoverflow topk topkweighted boundingratio deltasum exponentialmovingaverage exponentialtimedecayedavg
    grouparraylast grouparraymovingavg grouparraymovingsum grouparraysample groupbitmap intervallengthsum maxintersections
    quantileexacthigh quantileexactlow quantilestdigest quantilestiming rankcorr singlevalueornull sparkbar uniq uniqcombined uniqcombined64 uniqexact uniqhll12 varpop varsamp
    argandmax argandmin grouparrayinsertat grouparrayintersect quantileexactexclusive quantileexactinclusive
    quantileinterpolatedweighted summappedarrays maxmappedarrays minmappedarrays maxintersectionsposition uniqupto"""
_AGGREGATE_SUFFIXES = (
    """array distinct distinctif foreach if ifornull map merge ordefault ordefaultif ornull ornullif state"""
)
_STANDARD_AGGREGATES = """array_agg bit_and bit_or bit_xor covar_pop covar_samp group_concat grouping max_by min_by retention
    regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy sequencecount sequencematch
    std stddev stddev_pop stddev_samp string_agg sumcount var_pop var_samp windowfunnel"""
_WINDOW = """cume_dist denserank dense_rank lag laginframe lead leadinframe nth_value ntile percentrank percent_rank rank
    row_number"""
_OPERATORS = """and array arrayelement cast concat divide equals exists globalin globalnotin greater greaterorequals ilike in
    intdiv interval isdistinctfrom isnotdistinctfrom isnotnull isnull lambda less lessorequals like match minus modulo
    multiply negate not notequals notilike notin notlike nothing or plus tuple tupleelement xor"""
_NUMBERS = """abs acos acosh asin asinh atan atan2 atanh bitand bitcount bitnot bitor bitshiftleft bitshiftright bitxor cbrt ceil
    ceiling cos cosh degrees divideornull e erf erfc exp exp10 exp2 factorial floor gcd greatest hypot ifnotfinite
    intdivornull intdivorzero isfinite isinfinite isnan lcm least lgamma ln log log10 log1p log2 max2 min2 mod moduloorzero
    cosinedistance dotproduct l1distance l1norm l2distance l2norm linfdistance linfnorm
    pi positivemodulo pow power radians rand rand64 randcanonical round roundbankers rounddown sign sin sinh sqrt tan tanh
    trunc truncate widthbucket width_bucket"""
_TEXT = """alphatokens appendtrailingcharifabsent ascii base58decode base58encode base64decode base64encode bin char
    char_length character_length concat_ws concatwithseparator countmatches countsubstrings countsubstringscaseinsensitive
    decodeurlcomponent domain domainwithoutwww empty encodeurlcomponent endswith extract extractall extractallgroups
    extracturlparameter extracturlparameters firstsignificantsubdomain format fragment from_base64 hassubsequence hastoken
    hastokencaseinsensitive hex initcap initcaputf8 instr isvalidutf8 lcase left leftpad leftpadutf8 leftutf8 length
    lengthutf8 levenshteindistance locate lower lowerutf8 lpad ltrim matchcaseinsensitive mid multisearchany ngramdistance
    ngramsearch normalizeutf8nfc notempty octet_length overlay path pathfull position positioncaseinsensitive
    positioncaseinsensitiveutf8 positionutf8 printf protocol querystring regexpextract regexp_extract regexp_replace repeat
    replace replaceall replaceone replaceregexpall replaceregexpone reverse reverseutf8 right rightpad rightpadutf8
    rightutf8 rpad rtrim soundex space splitbychar splitbynonalpha splitbyregexp splitbystring splitbywhitespace startswith
    startswithutf8 substr substring substringindex substringutf8 substring_index to_base64 tokens
    topleveldomain translate translateutf8 trim trimboth trimleft trimright ucase unbin unhex upper upperutf8
    cutquerystring cuturlparameter cutwww editdistance jarosimilarity jarowinklersimilarity
    cuttofirstsignificantsubdomain basename tovalidutf8 normalizeutf8nfkc normalizeutf8nfd isascii multimatchany
    multimatchanyindex multisearchallpositions multisearchfirstindex regexp_matches regexp_substr ngrams netloc port
    stringjaccardindex dameraulevenshteindistance base32encode base64urlencode urlhierarchy urlpathhierarchy"""
_TIME = """adddate adddays addhours addinterval addminutes addmonths addquarters addseconds addweeks addyears age curdate
    current_date dateadd datesub timestampadd timestampsub current_timestamp date date_add date_bin date_diff date_format date_sub date_trunc datediff datename
    datetrunc day dayofmonth dayofweek dayofyear formatdatetime formatdatetimeinjodasyntax from_unixtime fromunixtimestamp
    hour last_day makedate makedate32 makedatetime makedatetime64 minute month monthname now now64 parsedatetime
    parsedatetime64besteffort parsedatetimebesteffort parsedatetimebesteffortornull parsedatetimebesteffortorzero
    parsedatetimeornull parsedatetimeorzero quarter second subdate subtractdays subtracthours subtractminutes
    subtractmonths subtractquarters subtractseconds subtractweeks subtractyears timediff timeslot timeslots timestamp
    timestamp_diff timestampdiff timezone timezoneof todayofmonth todayofweek todayofyear todaysinmonth tohour toisoweek
    toisoyear tolastdayofmonth tolastdayofweek tominute tomonday tomonth toquarter torelativedaynum torelativehournum
    torelativemonthnum torelativeweeknum torelativeyearnum tosecond tostartofday tostartoffifteenminutes
    tostartoffiveminute tostartoffiveminutes tostartofhour tostartofinterval tostartofisoyear tostartofminute
    tostartofmonth tostartofquarter tostartofsecond tostartoftenminutes tostartofweek tostartofyear totimezone
    tounixtimestamp tounixtimestamp64milli toweek toyear toyearweek toyyyymm toyyyymmdd toyyyymmddhhmmss today week year
    yearweek yesterday yyyymmddtodate fromunixtimestamp64milli
    changeday changemonth changeyear parsedatetime64 torelativequarternum tomillisecond totime utc_timestamp
    utctimestamp addmilliseconds to_days from_days timezoneoffset fromutctimestamp toutctimestamp"""
_INTERVALS = "second minute hour day week month quarter year millisecond microsecond"
_NESTED = """arrayall arrayavg arraycompact arrayconcat arraycount arraycumsum arraydifference arraydistinct arrayenumerate
    arraycumsumnonnegative arraydotproduct arrayremove arrayshuffle arrayenumeratedense arrayenumerateuniq arrayexcept arrayexists arrayfill arrayfilter arrayfirst arrayfirstindex
    arrayflatten arrayfold arrayintersect arrayjoin arraylast arraylastindex arraymap arraymax arraymin arraypopback
    arraypopfront arrayproduct arraypushback arraypushfront arrayreduce arrayresize arrayreverse arrayreversesort
    arrayslice arraysort arraysplit arraystringconcat arraysum arrayunion arrayuniq arraywithconstant arrayzip
    array_to_string cardinality countequal flatten has hasall hasany indexof map mapadd mapapply mapcontains mapcontainskey
    mapconcat mapexists mapfilter mapfromarrays mapkeys mapsort mapsubtract mapvalues notempty range tupleconcat
    tupleelement tuplenames unnest
    arrayauc arraybottomk arrayelementornull arrayfirstornull arrayjaccardindex arraylastornull
    arraypartialsort arrayrotateleft arrayrotateright arrayshiftleft arrayshiftright arrayshingles arraysymmetricdifference
    arraytopk arraytranspose array_remove flattentuple mapall mapcontainsvalue mapupdate
    map_from_arrays tupledivide tupleminus tuplemultiply tupleplus untuple"""
_JSON = """isvalidjson json_array_length json_exists json_query json_value jsonarraylength jsonextract jsonextractarrayraw
    jsonextractbool jsonextractfloat jsonextractint jsonextractkeys jsonextractkeysandvalues jsonextractraw
    jsonextractstring jsonextractuint jsonhas jsonkey jsonlength jsontype simplejsonextractbool simplejsonextractfloat
    simplejsonextractint simplejsonextractraw simplejsonextractstring simplejsonextractuint simplejsonhas tojsonstring
    visitparamextractbool visitparamextractfloat visitparamextractint visitparamextractraw visitparamextractstring
    visitparamextractuint visitparamhas
    jsonallpaths jsonallpathswithtypes jsonmergepatch prettyprintjson"""
_HASHES = """cityhash64 farmhash64 halfmd5 inthash32 inthash64 md5 metrohash64 murmurhash2_64 murmurhash3_64 sha1 sha224 sha256
    sha512 siphash64 xxhash32 xxhash64
    crc32 siphash128"""
_GEO = """geodistance geohashdecode geohashencode geotoh3 greatcircledistance h3distance h3togeo pointinellipses pointinpolygon"""
_OTHER = """accuratecast accuratecastornull assumenotnull bar casewithexpression casewithoutexpression clamp coalesce columns
    defaultvalueofargumenttype dumpcolumnstructure finalizeaggregation firstnondefault formatreadabledecimalsize
    formatreadablequantity formatreadablesize formatreadabletimedelta generateuuidv4 generateuuidv7 if ifnull indexhint
    isnullable iszeroornull ipv4cidrtorange ipv4numtostring ipv4stringtonum ipv6numtostring ipv6stringtonum
    isipaddressinrange isipv4string isipv6string materialize multiif neighbor nullif reinterpret row
    rownumberinallblocks runningdifference throwif todecimalstring tonullable totypename transform uuidnumtostring
    uuidstringtonum variantelement varianttype
    format_bytes parsereadablesize parsetimedelta roundage roundduration sigmoid sqr conv moduloornull
    reinterpretasint32 reinterpretasint64 reinterpretasuint8 reinterpretasuint32 reinterpretasuint64 reinterpretasstring
    reinterpretasfloat64"""
_CONVERSIONS = """toint8 toint16 toint32 toint64 toint128 toint256 touint8 touint16 touint32 touint64 touint128 touint256 tobool
    tofloat32 tofloat64 todate todate32 todatetime todatetime32 todatetime64 todecimal32 todecimal64 todecimal128
    todecimal256 tofixedstring toipv4 toipv6 tolowcardinality tostring touuid"""
CLICKHOUSE_FUNCTIONS = frozenset(
    [
        *f"{_STANDARD_AGGREGATES} {_WINDOW} {_OPERATORS} {_NUMBERS} {_TEXT} {_TIME} {_NESTED} {_JSON} {_HASHES}".split(),
        *f"{_GEO} {_OTHER} {_AGGREGATES}".split(),
        *(name + suffix for name in _AGGREGATES.split() for suffix in _AGGREGATE_SUFFIXES.split()),
        *(name + suffix for name in _CONVERSIONS.split() for suffix in ("", "ornull", "orzero", "ordefault")),
        *(f"tointerval{unit}" for unit in _INTERVALS.split()),
    ]
)
CLICKHOUSE_TABLE_FUNCTIONS = frozenset({"generate_series", "generateseries", "numbers", "values", "zeros"})
_KEYWORDS = """datetime datetime64 decimal32 decimal64 decimal128 decimal256 div enum enum16 enum8 except fixedstring global
    interpolate lowcardinality nullable prewhere totals variant"""
CLICKHOUSE_KEYWORDS = frozenset(_KEYWORDS.split())
"""Keywords and types of ClickHouse that may precede a parenthesis."""
