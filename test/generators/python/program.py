"""Calls the API with a client that openapi-python-client generated, and reports what it saw as JSON."""

import json
import os
from uuid import UUID, uuid4

from muster import AuthenticatedClient
from muster.api.events import list_events
from muster.api.jobs import create_job
from muster.api.participants import (
    create_participant,
    get_participant,
    list_participants,
)
from muster.api.payments import create_payment, list_payments
from muster.models import (
    ApiError,
    ApiValidationError,
    Currency,
    EventList,
    Job,
    JobCreate,
    NewParticipantStatus,
    NumberOperator,
    NumberQuestion,
    OneOfOperator,
    OneOfQuestion,
    Participant,
    ParticipantCreate,
    ParticipantList,
    ParticipantSort,
    ParticipantStatus,
    PaymentCreate,
    PaymentList,
    ScreeningRequirement,
)

HEADERS = (
    "X-RateLimit-Limit",
    "X-RateLimit-Remaining",
    "X-RateLimit-Reset",
    "RateLimit",
    "RateLimit-Policy",
    "Retry-After",
)

Report = dict[str, object]


def create(
    client: AuthenticatedClient, name: str, status: NewParticipantStatus
) -> UUID:
    body = ParticipantCreate(full_name=name, email=f"{name}@example.com", status=status)
    participant = create_participant.sync(client=client, body=body)
    assert isinstance(participant, Participant)
    return participant.id


def list_names(client: AuthenticatedClient) -> list[str]:
    names: list[str] = []
    number = last = 1
    while number <= last:
        page = list_participants.sync(
            client=client,
            pagenumber=number,
            pagesize=1,
            filterstatus=[ParticipantStatus.ACTIVE, ParticipantStatus.INACTIVE],
            sort=[ParticipantSort.FULL_NAME_ASCENDING],
        )
        assert isinstance(page, ParticipantList)
        names.append(page.data[0].full_name)
        number, last = number + 1, page.meta.last_page
    return names


def cause_errors(client: AuthenticatedClient) -> Report:
    missing = get_participant.sync(uuid4(), client=client)
    assert isinstance(missing, ApiError)
    body = ParticipantCreate(full_name="Ada", email="ada@example.com")
    invalid = create_participant.sync(client=client, body=body)
    assert isinstance(invalid, ApiValidationError)
    return {"not_found": missing.message, "invalid": invalid.errors.to_dict()}


def pay(client: AuthenticatedClient, participant: UUID) -> int:
    body = PaymentCreate(
        participant_id=participant, amount_minor=3_000_000_000, currency=Currency.VND
    )
    create_payment.sync(client=client, body=body)
    payments = list_payments.sync(client=client)
    assert isinstance(payments, PaymentList)
    return payments.data[0].amount_minor


def ask(client: AuthenticatedClient) -> list[dict[str, object]]:
    years = NumberQuestion(
        key="years",
        label="Years?",
        requirement=ScreeningRequirement.MUST_HAVE,
        operator=NumberOperator.AT_LEAST,
        expected=5,
    )
    city = OneOfQuestion(
        key="city",
        label="City?",
        requirement=ScreeningRequirement.NICE_TO_HAVE,
        operator=OneOfOperator.ONE_OF,
        expected=["Lyon", "Paris"],
    )
    body = JobCreate(title="Interpreter", screening_questions=[years, city])
    job = create_job.sync(client=client, body=body)
    assert isinstance(job, Job)
    return [question.to_dict() for question in job.screening_questions]


def list_event_types(client: AuthenticatedClient) -> list[str]:
    events = list_events.sync(client=client)
    assert isinstance(events, EventList)
    return [event.event_type for event in events.data]


def read_new_status(proxy: AuthenticatedClient) -> object:
    try:
        page = list_participants.sync(client=proxy)
    except ValueError as error:
        return {"error": str(error)}
    assert isinstance(page, ParticipantList)
    return page.data[0].status


def read_new_event_type(proxy: AuthenticatedClient) -> object:
    try:
        return list_event_types(proxy)[0]
    except (ValueError, TypeError) as error:
        return {"error": str(error)}


def reach_limit(client: AuthenticatedClient) -> Report:
    while (response := list_participants.sync_detailed(client=client)).status_code != 429:
        pass
    assert isinstance(response.parsed, ApiError)
    return {
        "too_many_requests": response.parsed.message,
        "headers": {name: response.headers[name] for name in HEADERS},
    }


def new_client(url: str) -> AuthenticatedClient:
    return AuthenticatedClient(base_url=url, token=os.environ["MUSTER_API_KEY"])


def main() -> None:
    client = new_client(os.environ["MUSTER_URL"])
    create(client, "Ada", NewParticipantStatus.ACTIVE)
    create(client, "Grace", NewParticipantStatus.INACTIVE)
    participant = create(client, "Alan", NewParticipantStatus.ARCHIVED)
    proxy = new_client(os.environ["MUSTER_PROXY_URL"])
    report: Report = {
        "names": list_names(client),
        **cause_errors(client),
        "amount_minor": pay(client, participant),
        "questions": ask(client),
        "event_types": list_event_types(client),
        "new_status": read_new_status(proxy),
        "new_event_type": read_new_event_type(proxy),
        **reach_limit(client),
    }
    print(json.dumps(report))


main()
