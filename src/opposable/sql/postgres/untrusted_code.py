"""Relations that run code of other roles, and the schemas of that code.

A role that assumed a weaker one can return to its own, and so can a function that runs in its name. A view made by
another role would then have all rights of the reader. Such relations are excluded unless their code belongs to a
superuser or to the reader.
"""

from dataclasses import dataclass
from typing import Any

_UNTRUSTED_SQL = """
WITH RECURSIVE
trusted AS (SELECT oid FROM pg_catalog.pg_roles WHERE rolsuper OR rolname = session_user),
procs AS (SELECT oid, pronamespace AS space FROM pg_catalog.pg_proc WHERE proowner NOT IN (SELECT oid FROM trusted)),
opers AS (SELECT oid, oprnamespace AS space FROM pg_catalog.pg_operator
  WHERE oprowner NOT IN (SELECT oid FROM trusted) OR oprcode::oid IN (SELECT oid FROM procs)),
casted AS (SELECT unnest(ARRAY[castsource, casttarget]) AS oid FROM pg_catalog.pg_cast
  WHERE castfunc IN (SELECT oid FROM procs)),
types AS (SELECT oid, typnamespace AS space FROM pg_catalog.pg_type
  WHERE (typowner NOT IN (SELECT oid FROM trusted) AND typtype NOT IN ('c', 'e') AND typcategory <> 'A')
  OR (oid IN (SELECT oid FROM casted) AND oid >= 16384)
  OR typelem IN (SELECT oid FROM casted WHERE oid >= 16384)),
"""
_SCHEMAS_SQL = f"""{_UNTRUSTED_SQL}
found AS (SELECT space FROM procs UNION SELECT space FROM opers UNION SELECT space FROM types)
SELECT n.nspname FROM pg_catalog.pg_namespace n WHERE n.oid IN (SELECT space FROM found)
"""  # noqa: S608 - a constant
_RELATIONS_SQL = f"""{_UNTRUSTED_SQL}
strange AS (
  SELECT 'pg_catalog.pg_proc'::regclass::oid AS class, oid FROM procs
  UNION ALL SELECT 'pg_catalog.pg_operator'::regclass::oid, oid FROM opers
  UNION ALL SELECT 'pg_catalog.pg_type'::regclass::oid, oid FROM types),
reads AS (
  SELECT r.ev_class AS reader, d.refclassid AS class, d.refobjid AS oid
  FROM pg_catalog.pg_depend d JOIN pg_catalog.pg_rewrite r ON r.oid = d.objid
  WHERE d.classid = 'pg_catalog.pg_rewrite'::regclass),
found AS (
  SELECT reader AS oid FROM reads JOIN strange USING (class, oid)
  UNION SELECT a.attrelid FROM pg_catalog.pg_attribute a JOIN types t ON t.oid = a.atttypid
  UNION SELECT reads.reader FROM reads JOIN found ON reads.oid = found.oid
    WHERE reads.class = 'pg_catalog.pg_class'::regclass)
SELECT oid FROM found
"""  # noqa: S608 - a constant


@dataclass(frozen=True, slots=True)
class UntrustedCode:
    """Schemas with code of other roles, and oids of relations that use it."""

    schemas: frozenset[str] = frozenset()
    relations: frozenset[int] = frozenset()


async def find_untrusted_code(connection: Any) -> UntrustedCode:
    """Find code of roles that are neither superusers nor the connected role."""
    schemas = await (await connection.execute(_SCHEMAS_SQL)).fetchall()
    relations = await (await connection.execute(_RELATIONS_SQL)).fetchall()
    return UntrustedCode(frozenset(name for (name,) in schemas), frozenset(oid for (oid,) in relations))
