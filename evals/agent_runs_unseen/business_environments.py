"""Environments of a business: DNS records, a code repository, invoices, a vehicle fleet and a glossary."""

import itertools
from datetime import date, datetime
from typing import Any

from opposable.evals.agent_runs.environment import Environment

from .temporary_failures import Outage


def make_dns_zone() -> Environment:
    """Create the DNS records of a domain."""
    environment = Environment(
        {
            "records": {
                "rec-40812": {"name": "www.fernhill.org", "type": "A", "value": "203.0.113.10"},
                "rec-40813": {"name": "mail.fernhill.org", "type": "A", "value": "203.0.113.25"},
                "rec-40817": {"name": "old-check.fernhill.org", "type": "TXT", "value": "site-verification=7c1e"},
            }
        }
    )
    record_numbers = itertools.count(40818)

    async def list_records() -> list[dict[str, str]]:
        """List the DNS records of fernhill.org."""
        return [{"record_id": record_id, **record} for record_id, record in environment.state["records"].items()]

    async def add_record(name: str, record_type: str, value: str) -> dict[str, str]:
        """Add a DNS record to fernhill.org.

        Args:
            name: host name of the record
            record_type: A, CNAME, MX or TXT
            value: content of the record
        """
        host, kind = name.strip().lower().rstrip("."), record_type.strip().upper()
        if kind not in ("A", "CNAME", "MX", "TXT"):
            raise ValueError(f"record_type {record_type!r} must be A, CNAME, MX or TXT")
        if kind == "CNAME" and not value.endswith("."):
            raise ValueError(f"400 Bad Request: a CNAME value must end with a dot, such as {value + '.'!r}")
        if not host.endswith("fernhill.org"):
            host = f"{host}.fernhill.org"
        record_id = f"rec-{next(record_numbers)}"
        environment.state["records"][record_id] = {"name": host, "type": kind, "value": value}
        return {"record_id": record_id, "name": host}

    async def delete_record(record_id: str) -> str:
        """Delete a DNS record.

        Args:
            record_id: id of the record
        """
        if record_id not in environment.state["records"]:
            raise LookupError(f"404 Not Found: no record with the id {record_id!r} (ids come from list_records)")
        del environment.state["records"][record_id]
        return f"record {record_id} was deleted"

    environment.add_tool(list_records, read_only=True)
    environment.add_tool(add_record)
    environment.add_tool(delete_record)
    return environment


def make_repository() -> Environment:
    """Create a code repository with branches, commits and tags."""
    environment = Environment(
        {
            "branches": {"main": "a41f9c2", "feature/login": "77b03de", "fix-typo": "c90e114"},
            "tags": {"v1.3.0": "5d2e8aa"},
        }
    )
    commits = {
        "a41f9c2": {"author": "Ines Carvalho", "message": "Round totals to cents"},
        "5d2e8aa": {"author": "Tomas Reyes", "message": "Release 1.3.0"},
        "77b03de": {"author": "Tomas Reyes", "message": "Add the login form"},
        "c90e114": {"author": "Lin Zhao", "message": "Correct a typo in the help"},
    }

    def get_head(branch: str) -> str:
        branches = environment.state["branches"]
        if branch in branches:
            return str(branches[branch])
        similar_names = [name for name in branches if branch in name]
        hint = f" Did you mean '{similar_names[0]}'?" if similar_names else ""
        raise LookupError(f"error: branch '{branch}' not found.{hint}")

    async def show_log(branch: str) -> list[dict[str, str]]:
        """List the commits of a branch, the newest first.

        Args:
            branch: name of the branch
        """
        return [{"commit": commit, **commits[commit]} for commit in dict.fromkeys((get_head(branch), "5d2e8aa"))]

    async def create_branch(name: str, start_point: str = "main") -> str:
        """Create a branch.

        Args:
            name: name of the new branch
            start_point: branch or commit to start from
        """
        if name in environment.state["branches"]:
            raise ValueError(f"fatal: a branch named '{name}' already exists")
        commit = start_point if start_point in commits else get_head(start_point)
        environment.state["branches"][name] = commit
        return f"branch {name} was created at {commit}"

    async def delete_branch(name: str) -> str:
        """Delete a branch.

        Args:
            name: name of the branch
        """
        get_head(name)
        if name == "main":
            raise ValueError("error: refusing to delete the protected branch 'main'")
        commit = environment.state["branches"].pop(name)
        return f"Deleted branch {name} (was {commit})."

    async def create_tag(name: str, commit: str) -> str:
        """Tag a commit.

        Args:
            name: name of the tag
            commit: hash of the commit
        """
        if commit not in commits:
            raise ValueError(f"fatal: '{commit}' is not a commit hash; show_log lists the hashes of a branch")
        environment.state["tags"][name] = commit
        return f"tag {name} is at {commit}"

    environment.add_tool(show_log, read_only=True)
    environment.add_tool(create_branch)
    environment.add_tool(delete_branch)
    environment.add_tool(create_tag)
    return environment


def make_invoices() -> Environment:
    """Create open and paid invoices."""
    environment = Environment(
        {
            "invoices": {
                "2026-0311": {"customer": "Brightwater Ltd", "total": 1480.0, "paid_on": None, "reminders": 0},
                "2026-0315": {"customer": "Okafor Brothers", "total": 615.0, "paid_on": "14/10/2026", "reminders": 0},
                "2026-0318": {"customer": "Okafor Brothers", "total": 972.5, "paid_on": None, "reminders": 0},
            }
        }
    )

    def get_invoice(invoice_no: str) -> dict[str, Any]:
        invoice: dict[str, Any] | None = environment.state["invoices"].get(str(invoice_no).strip())
        if invoice is None:
            raise LookupError(f'{{"error": "not_found", "message": "invoice {invoice_no} does not exist"}}')
        return invoice

    async def find_invoices(customer: str) -> list[dict[str, Any]]:
        """List the invoices of a customer. An invoice without a day of payment is unpaid.

        Args:
            customer: name of the customer
        """
        return [
            {"invoice_no": number, "total": invoice["total"], "paid_on": invoice["paid_on"]}
            for number, invoice in environment.state["invoices"].items()
            if customer.strip().casefold() in invoice["customer"].casefold()
        ]

    async def send_reminder(invoice_no: str) -> str:
        """Send the customer a payment reminder for an invoice.

        Args:
            invoice_no: number of the invoice
        """
        invoice = get_invoice(invoice_no)
        if invoice["paid_on"]:
            raise ValueError(f"409 Conflict: invoice {invoice_no} is already paid")
        invoice["reminders"] += 1
        return f"reminder for {invoice_no} was sent to {invoice['customer']}"

    async def mark_paid(invoice_no: str, paid_on: str) -> str:
        """Mark an invoice as paid.

        Args:
            invoice_no: number of the invoice
            paid_on: day of the payment
        """
        invoice = get_invoice(invoice_no)
        try:
            day = datetime.strptime(paid_on, "%d/%m/%Y")  # noqa: DTZ007 - a day has no time zone
        except ValueError:
            raise ValueError(f"paid_on {paid_on!r} does not match the format DD/MM/YYYY") from None
        invoice["paid_on"] = day.strftime("%d/%m/%Y")
        return f"{invoice_no} was paid on {paid_on}"

    environment.add_tool(find_invoices, read_only=True)
    environment.add_tool(send_reminder)
    environment.add_tool(mark_paid)
    return environment


def make_fleet(unavailable_count: int = 0) -> Environment:
    """Create the vehicles of a company; drivers cannot be assigned for the first `unavailable_count` calls."""
    environment = Environment(
        {
            "vehicles": {
                "ZH-20417": {"model": "Ford Transit", "driver": "Petrov", "mileage_km": 84210},
                "ZH-33908": {"model": "VW Caddy", "driver": None, "mileage_km": 31875},
                "ZH-51126": {"model": "Skoda Octavia", "driver": "Dlamini", "mileage_km": 120402},
            },
            "workshop_visits": [],
        }
    )
    outage = Outage(unavailable_count, "503 Service Unavailable: the fleet database is locked, try again")

    def get_vehicle_of_plate(plate: str) -> dict[str, Any]:
        vehicle: dict[str, Any] | None = environment.state["vehicles"].get(str(plate).strip().upper())
        if vehicle is None:
            raise LookupError(f"no vehicle with the plate {plate!r}")
        return vehicle

    async def get_vehicle(plate: str) -> dict[str, Any]:
        """Show the model, the driver and the mileage of a vehicle.

        Args:
            plate: the number plate
        """
        return {"plate": plate, **get_vehicle_of_plate(plate)}

    async def record_mileage(plate: str, km: int) -> str:
        """Record the odometer reading of a vehicle.

        Args:
            plate: the number plate
            km: the reading in kilometres
        """
        vehicle = get_vehicle_of_plate(plate)
        if int(km) < vehicle["mileage_km"]:
            raise ValueError(f"km {km} is below the last reading of {vehicle['mileage_km']}")
        vehicle["mileage_km"] = int(km)
        return f"{plate}: {km} km"

    async def assign_driver(plate: str, driver: str) -> str:
        """Assign a driver to a vehicle.

        Args:
            plate: the number plate
            driver: name of the driver
        """
        outage.fail_while_active()
        get_vehicle_of_plate(plate)["driver"] = driver.strip()
        return f"{driver} drives {plate}"

    async def book_workshop(plate: str, service_code: str, day: str) -> str:
        """Book a vehicle into the workshop.

        Args:
            plate: the number plate
            service_code: the service
            day: YYYY-MM-DD
        """
        get_vehicle_of_plate(plate)
        if service_code not in ("SV10", "SV20", "SV30"):
            raise ValueError(
                f"service_code {service_code!r} is invalid: SV10 (oil change), SV20 (tyre change), SV30 (inspection)"
            )
        environment.state["workshop_visits"].append(
            [str(plate).strip().upper(), service_code, date.fromisoformat(day).isoformat()]
        )
        return f"{plate} is booked for {service_code} on {day}"

    environment.add_tool(get_vehicle, read_only=True)
    environment.add_tool(record_mileage)
    environment.add_tool(assign_driver, idempotent=True)
    environment.add_tool(book_workshop)
    return environment


def make_glossary() -> Environment:
    """Create a glossary of translated terms."""
    environment = Environment(
        {
            "entries": {
                "TM-140": {"term": "shopping cart", "language": "fr-FR", "translation": "panier", "approved": False},
                "TM-152": {"term": "invoice", "language": "de-DE", "translation": "Rechnung", "approved": False},
                "TM-161": {"term": "dashboard", "language": "de-DE", "translation": "Übersicht", "approved": True},
            }
        }
    )
    entry_numbers = itertools.count(162)

    def require_entry(entry_id: str) -> str:
        if entry_id not in environment.state["entries"]:
            raise LookupError(f"404: no entry {entry_id!r}; look_up_term returns entry ids such as TM-100")
        return entry_id

    async def look_up_term(term: str) -> list[dict[str, Any]]:
        """Look up a term in the glossary.

        Args:
            term: the English term
        """
        return [
            {"entry_id": entry_id, **entry}
            for entry_id, entry in environment.state["entries"].items()
            if entry["term"] == term.strip().casefold()
        ]

    async def add_translation(term: str, language: str, translation: str) -> dict[str, str]:
        """Add the translation of a term to the glossary.

        Args:
            term: the English term
            language: language of the translation
            translation: the translation
        """
        if language not in ("de-DE", "es-ES", "fr-FR"):
            raise ValueError(f"unsupported language {language!r}: use a locale (de-DE, es-ES or fr-FR)")
        entry_id = f"TM-{next(entry_numbers)}"
        environment.state["entries"][entry_id] = {
            "term": term.strip().casefold(),
            "language": language,
            "translation": translation.strip().casefold(),
            "approved": False,
        }
        return {"entry_id": entry_id}

    async def approve_entry(entry_id: str) -> str:
        """Approve an entry of the glossary.

        Args:
            entry_id: id of the entry
        """
        environment.state["entries"][require_entry(entry_id)]["approved"] = True
        return f"{entry_id} is approved"

    async def delete_entry(entry_id: str) -> str:
        """Delete an entry of the glossary.

        Args:
            entry_id: id of the entry
        """
        del environment.state["entries"][require_entry(entry_id)]
        return f"{entry_id} was deleted"

    environment.add_tool(look_up_term, read_only=True)
    environment.add_tool(add_translation)
    environment.add_tool(approve_entry)
    environment.add_tool(delete_entry)
    return environment
