//! Calls the API with a client that openapi-generator generated, and reports what it saw as JSON.
#![deny(warnings)]

use std::env;
use std::error::Error as StdError;

use muster::apis::Error;
use muster::apis::configuration::Configuration;
use muster::apis::events_api::list_events;
use muster::apis::jobs_api::create_job;
use muster::apis::participants_api::{
    ListParticipantsError, create_participant, get_participant, list_participants,
};
use muster::apis::payments_api::{create_payment, list_payments};
use muster::models::{
    AnswerValue, ApiError, ApiValidationError, Event, JobCreate, NewParticipantStatus,
    NumberQuestion, OneOfOperator, OneOfQuestion, ParticipantCreate, ParticipantList,
    ParticipantSort, PaymentCreate, ScreeningQuestion, ScreeningQuestionInput,
};
use serde_json::{Map, Value, json};
use uuid::Uuid;

const HEADERS: [&str; 6] = [
    "X-RateLimit-Limit",
    "X-RateLimit-Remaining",
    "X-RateLimit-Reset",
    "RateLimit",
    "RateLimit-Policy",
    "Retry-After",
];

type Outcome<T> = Result<T, Box<dyn StdError>>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome<()> {
    let client = configure("MUSTER_URL")?;
    create(&client, "Ada", NewParticipantStatus::Active).await?;
    create(&client, "Grace", NewParticipantStatus::Inactive).await?;
    let participant = create(&client, "Alan", NewParticipantStatus::Archived).await?;

    let missing = get_participant(&client, &Uuid::new_v4().to_string(), None, None).await;
    let missing: ApiError = serde_json::from_str(&error_body(missing)?)?;
    let twin = ParticipantCreate {
        email: Some(Some("ada@example.com".into())),
        ..ParticipantCreate::new("Ada".into())
    };
    let invalid = create_participant(&client, twin, None).await;
    let invalid: ApiValidationError = serde_json::from_str(&error_body(invalid)?)?;

    let proxy = configure("MUSTER_PROXY_URL")?;
    let mut report = json!({
        "names": list_names(&client).await?,
        "not_found": missing.message,
        "invalid": invalid.errors,
        "amount_minor": pay(&client, participant).await?,
        "questions": ask(&client).await?,
        "event_types": list_event_types(&client).await?,
        "new_status": read_new_status(&proxy).await,
        "new_event_type": list_event_types(&proxy).await?[0],
    });
    let limited = reach_limit(&client).await?;
    report["too_many_requests"] = json!(limited.message);
    report["headers"] = json!(limit_headers(&client).await?);
    println!("{report}");
    Ok(())
}

fn configure(url: &str) -> Outcome<Configuration> {
    Ok(Configuration {
        base_path: env::var(url)?,
        bearer_access_token: Some(env::var("MUSTER_API_KEY")?),
        ..Configuration::default()
    })
}

/// The body of an error as text. The generated function gives the error a type that does not follow
/// the status.
fn error_body<T, E>(result: Result<T, Error<E>>) -> Outcome<String> {
    match result {
        Err(Error::ResponseError(response)) => Ok(response.content),
        _ => Err("the request did not fail".into()),
    }
}

async fn create(client: &Configuration, name: &str, status: NewParticipantStatus) -> Outcome<Uuid> {
    let body = ParticipantCreate {
        email: Some(Some(format!("{name}@example.com"))),
        status: Some(status),
        ..ParticipantCreate::new(name.into())
    };
    Ok(create_participant(client, body, None).await?.id)
}

async fn list(
    client: &Configuration,
    number: Option<i32>,
    size: Option<i32>,
    statuses: Option<Vec<String>>,
    sort: Option<Vec<ParticipantSort>>,
) -> Result<ParticipantList, Error<ListParticipantsError>> {
    list_participants(
        client, number, size, None, statuses, None, None, None, None, None, None, None, None, None,
        None, None, None, None, sort, None,
    )
    .await
}

async fn list_names(client: &Configuration) -> Outcome<Vec<String>> {
    let mut names = Vec::new();
    let (mut number, mut last) = (1, 1);
    while number <= last {
        let statuses = vec!["active".into(), "inactive".into()];
        let sort = vec![ParticipantSort::FULL_NAME_ASCENDING];
        let page = list(client, Some(number), Some(1), Some(statuses), Some(sort)).await?;
        names.push(page.data[0].full_name.clone());
        last = page.meta.last_page;
        number += 1;
    }
    Ok(names)
}

async fn pay(client: &Configuration, participant: Uuid) -> Outcome<i64> {
    let payment = PaymentCreate::new(participant, 3_000_000_000, "VND".into());
    create_payment(client, payment, None).await?;
    let payments = list_payments(
        client, None, None, None, None, None, None, None, None, None, None, None, None, None,
        None, None, None, None, None, None, None,
    )
    .await?;
    Ok(payments.data[0].amount_minor)
}

async fn ask(client: &Configuration) -> Outcome<Vec<ScreeningQuestion>> {
    let years = NumberQuestion::new(
        "years".into(),
        "Years?".into(),
        "must_have".into(),
        "at_least".into(),
        5.0,
    );
    let city = OneOfQuestion::new(
        "city".into(),
        "City?".into(),
        "nice_to_have".into(),
        OneOfOperator::OneOf,
        ["Lyon", "Paris"].map(|city| AnswerValue::String(city.into())).into(),
    );
    let mut job = JobCreate::new("Interpreter".into());
    job.screening_questions = Some(vec![
        ScreeningQuestionInput::NumberQuestion(Box::new(years)),
        ScreeningQuestionInput::OneOfQuestion(Box::new(city)),
    ]);
    Ok(create_job(client, job, None).await?.screening_questions)
}

async fn list_event_types(client: &Configuration) -> Outcome<Vec<String>> {
    let events = list_events(
        client, None, None, None, None, None, None, None, None, None, None, None, None,
    )
    .await?;
    let types = events.data.iter().map(|event| match event {
        Event::ParticipantEvent(event) => event.event_type.clone(),
        Event::PaymentEvent(event) => event.event_type.clone(),
        Event::JobEvent(event) => event.event_type.clone(),
        _ => "another".into(),
    });
    Ok(types.collect())
}

async fn read_new_status(proxy: &Configuration) -> Value {
    match list(proxy, None, None, None, None).await {
        Ok(page) => json!(page.data[0].status),
        Err(error) => json!({ "error": error.to_string() }),
    }
}

async fn reach_limit(client: &Configuration) -> Outcome<ApiError> {
    loop {
        if let Err(Error::ResponseError(response)) = list(client, None, None, None, None).await {
            assert_eq!(response.status, 429);
            return Ok(serde_json::from_str(&response.content)?);
        }
    }
}

/// Sends a request with the HTTP client itself, because the generated functions do not return
/// headers.
async fn limit_headers(client: &Configuration) -> Outcome<Map<String, Value>> {
    let url = format!("{}/public/v1/participants", client.base_path);
    let token = client.bearer_access_token.as_deref().unwrap_or_default();
    let response = client.client.get(url).bearer_auth(token).send().await?;
    let mut headers = Map::new();
    for name in HEADERS {
        let value = response.headers().get(name).ok_or(name)?.to_str()?;
        headers.insert(name.into(), json!(value));
    }
    Ok(headers)
}
