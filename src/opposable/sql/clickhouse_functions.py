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
    """array distinct distinctif foreach if ifornull map merge ordefault ordefaultif ornull ornullif resample state"""
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
    timestamp_add timestamp_diff timestamp_sub
    timestampdiff timezone timezoneof todayofmonth todayofweek todayofyear todaysinmonth tohour toisoweek
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
_RARE_AGGREGATES = """analysisofvariance anova any_respect_nulls any_value_respect_nulls anylast_respect_nulls anylastrespectnulls
    anyrespectnulls anyvaluerespectnulls approx_top_count approx_top_k approx_top_sum array_concat_agg
    categoricalinformationvalue contingency corrmatrix corrstable covarpopmatrix covarpopstable covarsampmatrix
    covarsampstable cramersv cramersvbiascorrected deltasumtimestamp distinctdynamictypes distinctjsonpaths
    distinctjsonpathsandtypes exponentialtimedecayedcount exponentialtimedecayedmax exponentialtimedecayedsum
    first_value_respect_nulls firstvaluerespectnulls gini groupbitmapand groupbitmapor groupbitmapxor
    groupnumericindexedvector kolmogorovsmirnovtest largesttrianglethreebuckets last_value_respect_nulls
    lastvaluerespectnulls lttb mannwhitneyutest meanztest medianbfloat16 medianbfloat16weighted mediandd
    mediandeterministic medianexacthigh medianexactlow medianexactweighted medianexactweightedinterpolated mediangk
    medianinterpolatedweighted mediantdigest mediantdigestweighted mediantiming mediantimingweighted mergedjsonpatch
    mvtencode nonnegativederivative quantilebfloat16 quantilebfloat16weighted quantiledd quantiledeterministic
    quantileexactweightedinterpolated quantilegk quantileprometheushistogram quantilesbfloat16
    quantilesbfloat16weighted quantilesdd quantilesdeterministic quantilesexactexclusive quantilesexacthigh
    quantilesexactinclusive quantilesexactlow quantilesexactweighted quantilesexactweightedinterpolated quantilesgk
    quantilesinterpolatedweighted quantilesprometheushistogram quantilestdigestweighted quantilestimingweighted
    quantiletdigestweighted quantiletimingweighted sequencematchevents sequencenextnode st_asmvt stddevpopstable
    stddevsampstable studentttest studentttestonesample summapfiltered summapfilteredwithoverflow summapwithoverflow
    theilsu varpopstable varsampstable welchttest"""
_RARE_FUNCTIONS = """accuratecastordefault addmicroseconds addnanoseconds addtupleofintervals areacartesian areaspherical arrayaucpr
    arrayautocorrelation arrayenumeratedenseranked arrayenumerateuniqranked arrayflattenedlength
    arraylevenshteindistance arraylevenshteindistanceweighted arraynormalizedgini arraypartialreversesort
    arraypartialshuffle arrayrandomsample arrayreversefill arrayreversesplit arrayrocauc arraysimilarity
    arrayzipunaligned avg2 base32decode base64urldecode bithammingdistance bitmapand bitmapandcardinality
    bitmapandnot bitmapandnotcardinality bitmapbuild bitmapcardinality bitmapcontains bitmaphasall bitmaphasany
    bitmapmax bitmapmin bitmapor bitmaporcardinality bitmapsubsetinrange bitmapsubsetlimit bitmaptoarray
    bitmaptransform bitmapxor bitmapxorcardinality bitmasktoarray bitmasktolist bitpositionstoarray bitrotateleft
    bitrotateright bitslice bittest bittestall bittestany bytehammingdistance byteslice byteswap casefoldutf8
    changehour changeminute changesecond comparesubstrings concatassumeinjective concatwithseparatorassumeinjective
    convertcharset cosinedistancetransposed cosinedistancetransposedquantized countdigits
    countmatchescaseinsensitive countsubstringscaseinsensitiveutf8 crc32ieee crc64 cutfragment cutipv6
    cutquerystringandfragment cuttofirstsignificantsubdomaincustom cuttofirstsignificantsubdomaincustomrfc
    cuttofirstsignificantsubdomaincustomwithwww cuttofirstsignificantsubdomaincustomwithwwwrfc
    cuttofirstsignificantsubdomainrfc cuttofirstsignificantsubdomainwithwww cuttofirstsignificantsubdomainwithwwwrfc
    datetime64tosnowflakeid datetimetosnowflakeid datetimetouuidv7 decodehtmlcomponent decodeurlformcomponent
    decodexmlcomponent digits distancecosine distancel1 distancel2 distancel2squared distancelinf distancelp
    dividedecimal domainrfc domainwithoutwwwrfc dotproducttransposed dotproducttransposedquantized dynamicelement
    dynamictype editdistanceutf8 emptyarraydate emptyarraydatetime emptyarrayfloat32 emptyarrayfloat64
    emptyarrayint16 emptyarrayint32 emptyarrayint64 emptyarrayint8 emptyarraystring emptyarraytosingle
    emptyarrayuint16 emptyarrayuint32 emptyarrayuint64 emptyarrayuint8 encodeurlformcomponent encodexmlcomponent
    endswithcaseinsensitive endswithcaseinsensitiveutf8 endswithutf8 extractallgroupshorizontal
    extractallgroupsvertical extractgroups extractkeyvaluepairs extractkeyvaluepairswithescaping extracttextfromhtml
    extracturlparameternames farmfingerprint64 financialinternalrateofreturn financialinternalrateofreturnextended
    financialnetpresentvalue financialnetpresentvalueextended firstline firstsignificantsubdomaincustom
    firstsignificantsubdomaincustomrfc firstsignificantsubdomainrfc from_utc_timestamp fromdayssinceyearzero
    fromdayssinceyearzero32 frommodifiedjulianday frommodifiedjuliandayornull fromunixtimestamp64micro
    fromunixtimestamp64nano fromunixtimestamp64second fromunixtimestampinjodasyntax gccmurmurhash geohashesinbox
    geometryintersectcartesian geometryintersectspherical geotomgrs geotoutm greatcircleangle h3cellaream2
    h3cellarearads2 h3edgeangle h3edgelengthkm h3edgelengthm h3exactedgelengthkm h3exactedgelengthm
    h3exactedgelengthrads h3getbasecell h3getdestinationindexfromunidirectionaledge h3getfaces
    h3getindexesfromunidirectionaledge h3getoriginindexfromunidirectionaledge h3getpentagonindexes h3getres0indexes
    h3getresolution h3getunidirectionaledge h3getunidirectionaledgeboundary h3getunidirectionaledgesfromhexagon
    h3hexareakm2 h3hexaream2 h3hexring h3indexesareneighbors h3ispentagon h3isresclassiii h3isvalid h3kring h3line
    h3numhexagons h3pointdistkm h3pointdistm h3pointdistrads h3polygontocells h3polygontocellswithcontainment
    h3tocenterchild h3tochildren h3togeoboundary h3toparent h3tostring h3unidirectionaledgeisvalid hasalltoken
    hasalltokens hasanytoken hasanytokens hasphrase hassubsequencecaseinsensitive hassubsequencecaseinsensitiveutf8
    hassubsequenceutf8 hassubstr hastokencaseinsensitiveornull hastokenornull highlight hilbertdecode hilbertencode
    hivehash hop hopend hopstart iceberghash identity indexofassumesorted inet6_aton inet6_ntoa inet_aton inet_ntoa
    intexp10 intexp2 ipv4numtostringclassc ipv4stringtonumordefault ipv4stringtonumornull ipv4toipv6 ipv6cidrtorange
    ipv6stringtonumordefault ipv6stringtonumornull isdynamicelementinshareddata isprime isprobableprime isvalidascii
    javahash javahashutf16le jsonallvalues jsondynamicpaths jsondynamicpathswithtypes
    jsonextractarrayrawcaseinsensitive jsonextractboolcaseinsensitive jsonextractcaseinsensitive
    jsonextractfloatcaseinsensitive jsonextractintcaseinsensitive jsonextractkeysandvaluescaseinsensitive
    jsonextractkeysandvaluesraw jsonextractkeysandvaluesrawcaseinsensitive jsonextractkeyscaseinsensitive
    jsonextractrawcaseinsensitive jsonextractstringcaseinsensitive jsonextractuintcaseinsensitive
    jsonshareddatapaths jsonshareddatapathswithtypes jumpconsistenthash kafkamurmurhash keccak256
    kostikconsistenthash l1normalize l2distancetransposed l2distancetransposedquantized l2normalize
    l2squareddistance l2squarednorm levenshteindistanceutf8 linfnormalize localtime localtimestamp lpdistance lpnorm
    lpnormalize mapcontainskeylike mapcontainsvaluelike mapextractkeylike mapextractvaluelike mapfromstring
    mappartialreversesort mappartialsort mappopulateseries mapreversesort matchphrase md4 mgrstogeo midpoint
    mismatches modulolegacy moduloornull mortondecode mortonencode multifuzzymatchallindices multifuzzymatchany
    multifuzzymatchanyindex multimatchallindices multiplydecimal multisearchallpositionscaseinsensitive
    multisearchallpositionscaseinsensitiveutf8 multisearchallpositionsutf8 multisearchanycaseinsensitive
    multisearchanycaseinsensitiveutf8 multisearchanyutf8 multisearchfirstindexcaseinsensitive
    multisearchfirstindexcaseinsensitiveutf8 multisearchfirstindexutf8 multisearchfirstposition
    multisearchfirstpositioncaseinsensitive multisearchfirstpositioncaseinsensitiveutf8 multisearchfirstpositionutf8
    murmurhash2_32 murmurhash3_128 murmurhash3_32 natural_sort_key naturalsortkey ngramdistancecaseinsensitive
    ngramdistancecaseinsensitiveutf8 ngramdistanceutf8 ngramminhash ngramminhasharg ngramminhashargcaseinsensitive
    ngramminhashargcaseinsensitiveutf8 ngramminhashargutf8 ngramminhashcaseinsensitive
    ngramminhashcaseinsensitiveutf8 ngramminhashutf8 ngramsearchcaseinsensitive ngramsearchcaseinsensitiveutf8
    ngramsearchutf8 ngramsimhash ngramsimhashcaseinsensitive ngramsimhashcaseinsensitiveutf8 ngramsimhashutf8
    normalizel1 normalizel2 normalizelinf normalizelp normalizeutf8nfkccasefold normalizeutf8nfkd norml1 norml2
    norml2squared normlinf normlp nothas notmatch notmatchcaseinsensitive overlayutf8 parsedatetime32besteffort
    parsedatetime32besteffortornull parsedatetime32besteffortorzero parsedatetime64besteffortornull
    parsedatetime64besteffortorzero parsedatetime64besteffortus parsedatetime64besteffortusornull
    parsedatetime64besteffortusorzero parsedatetime64injodasyntax parsedatetime64injodasyntaxornull
    parsedatetime64injodasyntaxorzero parsedatetime64ornull parsedatetime64orzero parsedatetimebesteffortus
    parsedatetimebesteffortusornull parsedatetimebesteffortusorzero parsedatetimeinjodasyntax
    parsedatetimeinjodasyntaxornull parsedatetimeinjodasyntaxorzero parsereadablesizeornull parsereadablesizeorzero
    perimetercartesian perimeterspherical pmod pmodornull polygonareacartesian polygonareaspherical
    polygonconvexhullcartesian polygonperimetercartesian polygonperimeterspherical polygonsdistancecartesian
    polygonsdistancespherical polygonsequalscartesian polygonsintersectcartesian polygonsintersectioncartesian
    polygonsintersectionspherical polygonsintersectspherical polygonssymdifferencecartesian
    polygonssymdifferencespherical polygonsunioncartesian polygonsunionspherical polygonswithincartesian
    polygonswithinspherical portrfc positive_modulo positive_modulo_or_null positivemoduloornull proportionsztest
    querystringandfragment rand32 randbernoulli randbinomial randchisquared randconstant randexponential randfisherf
    randlognormal randnegativebinomial randnormal randpoisson randstudentt randuniform readwkb readwkblinestring
    readwkbmultilinestring readwkbmultipoint readwkbmultipolygon readwkbpoint readwkbpolygon readwkt
    readwktlinestring readwktmultilinestring readwktmultipoint readwktmultipolygon readwktpoint readwktpolygon
    readwktring regexp_instr regexpinstr regexpposition regexpquotemeta reinterpretasdate reinterpretasdatetime
    reinterpretasfixedstring reinterpretasfloat32 reinterpretasint128 reinterpretasint16 reinterpretasint256
    reinterpretasint8 reinterpretasuint128 reinterpretasuint16 reinterpretasuint256 reinterpretasuuid
    removeaccentsutf8 removediacriticsutf8 replicate reversebyseparator ripemd160 roundtoexp2
    runningdifferencestartingwithfirstvalue scalarproduct sha384 sha512_256 siphash128keyed siphash128reference
    siphash128referencekeyed siphash64keyed snowflakeidtodatetime snowflakeidtodatetime64 sparsegrams
    sparsegramshashes sparsegramshashesutf8 sparsegramsutf8 splitbyalpha sqiddecode sqidencode
    startswithcaseinsensitive startswithcaseinsensitiveutf8 str_to_date str_to_map stringbytesentropy
    stringbytesuniq stringjaccardindexutf8 stringtoh3 subbitmap substringindexutf8 subtractinterval
    subtractmicroseconds subtractmilliseconds subtractnanoseconds subtracttupleofintervals svg tgamma time_bucket
    to_unixtime to_utc_timestamp tobfloat16 tobfloat16ornull tobfloat16orzero tocolumntypename todayssinceyearzero
    tointerval tointervalnanosecond tokensforlikepattern tomicrosecond tomodifiedjulianday tomodifiedjuliandayornull
    tomonthnumsinceepoch tonanosecond topleveldomainrfc torelativeminutenum torelativesecondnum tostartofmicrosecond
    tostartofmillisecond tostartofnanosecond tostringcuttozero totime64 totime64ornull totime64orzero totimeornull
    totimeorzero totimewithfixeddate tounixtimestamp64micro tounixtimestamp64nano tounixtimestamp64second
    toyearnumsinceepoch trybase32decode trybase58decode trybase64decode trybase64urldecode tumble tumbleend
    tumblestart tupledividebynumber tuplehammingdistance tupleintdiv tupleintdivbynumber tupleintdivorzero
    tupleintdivorzerobynumber tuplemodulo tuplemodulobynumber tuplemultiplybynumber tuplenegate
    tuplepositivemodulobynumber tupletonamevaluepairs urlhash utmtogeo uuidtonum uuidv7todatetime vectordifference
    vectorsum wkb wkt wordshingleminhash wordshingleminhasharg wordshingleminhashargcaseinsensitive
    wordshingleminhashargcaseinsensitiveutf8 wordshingleminhashargutf8 wordshingleminhashcaseinsensitive
    wordshingleminhashcaseinsensitiveutf8 wordshingleminhashutf8 wordshinglesimhash
    wordshinglesimhashcaseinsensitive wordshinglesimhashcaseinsensitiveutf8 wordshinglesimhashutf8 wyhash64 xxh3
    xxh3_128 xxhash64spark yyyymmddhhmmsstodatetime yyyymmddhhmmsstodatetime64 yyyymmddtodate32"""
_SESSION = """blocknumber current_database currentdatabase current_user currentuser database isconstant rownumberinblock
    schema servertimezone uptime user version"""
_COMPUTED = """arrayprauc arrayreduceinranges bytesize colorsrgbtooklab colorsrgbtooklch coloroklabtosrgb coloroklchtosrgb
    defaultvalueoftypename flipcoordinates formatquery formatqueryornull formatquerysingleline
    formatquerysinglelineornull getsubcolumn hmac isdecimaloverflow lowcardinalityindices
    lowcardinalitykeys macnumtostring macstringtonum macstringtooui microsecond millisecond minsamplesizecontinuous
    minsamplesizeconversion modornull nanosecond normalizedqueryhash normalizequery numericindexedvectorallvaluesum
    numericindexedvectorbuild numericindexedvectorcardinality numericindexedvectorgetvalue numericindexedvectortomap
    parseiso8601duration randomfixedstring randomprintableascii randomstring randomstringutf8 seriesdecomposestl
    seriesoutliersdetecttukey sqid timeseriesdeltatogrid timeseriesratetogrid timeseriesrange visiblewidth
    st_linefromwkb st_mlinefromwkb st_mpolyfromwkb st_pointfromwkb st_polyfromwkb
    yandexconsistenthash"""
CLICKHOUSE_FUNCTIONS = frozenset(
    [
        *f"{_STANDARD_AGGREGATES} {_WINDOW} {_OPERATORS} {_NUMBERS} {_TEXT} {_TIME} {_NESTED} {_JSON} {_HASHES}".split(),
        *f"{_GEO} {_OTHER} {_AGGREGATES} {_RARE_AGGREGATES} {_RARE_FUNCTIONS} {_SESSION} {_COMPUTED}".split(),
        *(
            name + suffix
            for name in f"{_AGGREGATES} {_RARE_AGGREGATES}".split()
            for suffix in _AGGREGATE_SUFFIXES.split()
        ),
        *(name + suffix for name in _CONVERSIONS.split() for suffix in ("", "ornull", "orzero", "ordefault")),
        *(f"tointerval{unit}" for unit in _INTERVALS.split()),
    ]
)
CLICKHOUSE_TABLE_FUNCTIONS = frozenset(
    {"generate_series", "generateseries", "numbers", "numbers_mt", "values", "zeros"}
)
CLICKHOUSE_SYSTEM_TABLES = frozenset({"system.numbers", "system.numbers_mt", "system.one", "system.zeros"})
"""Tables of the engine that hold numbers alone."""
_HIGHER_ORDER = """arrayall arrayavg arraybottomk arraycompact arraycount arraycumsum arraycumsumnonnegative arraydifference arrayexists
    arrayfill arrayfilter arrayfirst arrayfirstindex arrayfirstornull arrayfold arraylast arraylastindex arraylastornull
    arraymap arraymax arraymin arraypartialreversesort arraypartialsort arrayproduct arrayreversefill arrayreversesort
    arrayreversesplit arraysort arraysplit arraysum arraytopk mapall mapapply mapexists mapfilter mappartialreversesort
    mappartialsort mapreversesort mapsort"""
HIGHER_ORDER_FUNCTIONS = frozenset(_HIGHER_ORDER.split())
"""Functions whose first argument may be a function, also by its name alone."""
_KEYWORDS = """apply datetime datetime64 decimal32 decimal64 decimal128 decimal256 div enum enum16 enum8 except fixedstring global
    interpolate lowcardinality nullable prewhere totals variant"""
CLICKHOUSE_KEYWORDS = frozenset(_KEYWORDS.split())
"""Keywords and types of ClickHouse that may precede a parenthesis."""
