import com.fasterxml.jackson.databind.ObjectMapper;
import java.net.http.HttpHeaders;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import java.util.stream.Collectors;
import org.openapitools.client.ApiClient;
import org.openapitools.client.ApiException;
import org.openapitools.client.api.EventsApi;
import org.openapitools.client.api.JobsApi;
import org.openapitools.client.api.ParticipantsApi;
import org.openapitools.client.api.PaymentsApi;
import org.openapitools.client.model.AnswerValue;
import org.openapitools.client.model.ApiError;
import org.openapitools.client.model.ApiValidationError;
import org.openapitools.client.model.Currency;
import org.openapitools.client.model.Event;
import org.openapitools.client.model.EventList;
import org.openapitools.client.model.JobCreate;
import org.openapitools.client.model.JobEvent;
import org.openapitools.client.model.NewParticipantStatus;
import org.openapitools.client.model.NumberOperator;
import org.openapitools.client.model.NumberQuestion;
import org.openapitools.client.model.OneOfOperator;
import org.openapitools.client.model.OneOfQuestion;
import org.openapitools.client.model.ParticipantCreate;
import org.openapitools.client.model.ParticipantEvent;
import org.openapitools.client.model.ParticipantList;
import org.openapitools.client.model.ParticipantSort;
import org.openapitools.client.model.ParticipantStatus;
import org.openapitools.client.model.PaymentCreate;
import org.openapitools.client.model.PaymentEvent;
import org.openapitools.client.model.PaymentList;
import org.openapitools.client.model.ScreeningQuestion;
import org.openapitools.client.model.ScreeningQuestionInput;
import org.openapitools.client.model.ScreeningRequirement;

/** Calls the API with a client that openapi-generator generated, and reports what it saw as JSON. */
public final class Program {
  private static final ObjectMapper MAPPER = ApiClient.createDefaultObjectMapper();
  private static final List<String> HEADERS =
      List.of(
          "X-RateLimit-Limit",
          "X-RateLimit-Remaining",
          "X-RateLimit-Reset",
          "RateLimit",
          "RateLimit-Policy",
          "Retry-After");

  private interface Request {
    void send() throws ApiException;
  }

  public static void main(String[] arguments) throws Exception {
    ApiClient client = newClient(System.getenv("MUSTER_URL"));
    ParticipantsApi participants = new ParticipantsApi(client);
    PaymentsApi payments = new PaymentsApi(client);
    Map<String, Object> report = new LinkedHashMap<>();

    create(participants, "Ada", NewParticipantStatus.ACTIVE);
    create(participants, "Grace", NewParticipantStatus.INACTIVE);
    UUID participant = create(participants, "Alan", NewParticipantStatus.ARCHIVED);
    report.put("names", listNames(participants));

    ApiException missing = failure(() -> participants.getParticipant(UUID.randomUUID(), null, null));
    report.put("not_found", MAPPER.readValue(missing.getResponseBody(), ApiError.class).getMessage());
    ParticipantCreate twin = new ParticipantCreate().fullName("Ada").email("ada@example.com");
    ApiException invalid = failure(() -> participants.createParticipant(twin, null));
    report.put(
        "invalid",
        MAPPER.readValue(invalid.getResponseBody(), ApiValidationError.class).getErrors());

    PaymentCreate payment =
        new PaymentCreate()
            .participantId(participant)
            .amountMinor(3_000_000_000L)
            .currency(Currency.VND);
    payments.createPayment(payment, null);
    report.put("amount_minor", readAmount(payments));
    report.put("questions", ask(new JobsApi(client)));
    report.put("event_types", listEventTypes(new EventsApi(client)));

    ApiClient proxy = newClient(System.getenv("MUSTER_PROXY_URL"));
    ParticipantsApi proxyParticipants = new ParticipantsApi(proxy);
    ParticipantList fromProxy = list(proxyParticipants, null, null, null, null);
    report.put("new_status", fromProxy.getData().get(0).getStatus());
    report.put("new_event_type", readNewEventType(new EventsApi(proxy)));

    ApiException limited =
        failure(
            () -> {
              while (true) list(participants, null, null, null, null);
            });
    report.put(
        "too_many_requests",
        MAPPER.readValue(limited.getResponseBody(), ApiError.class).getMessage());
    HttpHeaders headers = limited.getResponseHeaders();
    report.put(
        "headers",
        HEADERS.stream()
            .collect(Collectors.toMap(name -> name, name -> headers.firstValue(name).orElseThrow())));
    System.out.println(MAPPER.writeValueAsString(report));
  }

  private static ApiClient newClient(String url) {
    ApiClient client = new ApiClient();
    client.updateBaseUri(url);
    String authorization = "Bearer " + System.getenv("MUSTER_API_KEY");
    return client.setRequestInterceptor(request -> request.header("Authorization", authorization));
  }

  private static UUID create(
      ParticipantsApi participants, String name, NewParticipantStatus status) throws ApiException {
    ParticipantCreate body =
        new ParticipantCreate().fullName(name).email(name + "@example.com").status(status);
    return participants.createParticipant(body, null).getId();
  }

  private static List<String> listNames(ParticipantsApi participants) throws ApiException {
    List<String> names = new ArrayList<>();
    for (int number = 1, last = 1; number <= last; number++) {
      ParticipantList page =
          list(
              participants,
              number,
              1,
              Set.of(ParticipantStatus.ACTIVE, ParticipantStatus.INACTIVE),
              Set.of(ParticipantSort.FULL_NAME_ASCENDING));
      names.add(page.getData().get(0).getFullName());
      last = page.getMeta().getLastPage();
    }
    return names;
  }

  private static ParticipantList list(
      ParticipantsApi participants,
      Integer number,
      Integer size,
      Set<ParticipantStatus> statuses,
      Set<ParticipantSort> sort)
      throws ApiException {
    return participants.listParticipants(
        number, size, null, statuses, null, null, null, null, null, null,
        null, null, null, null, null, null, null, sort, null);
  }

  private static long readAmount(PaymentsApi payments) throws ApiException {
    PaymentList list =
        payments.listPayments(
            null, null, null, null, null, null, null, null, null, null,
            null, null, null, null, null, null, null, null, null, null);
    return list.getData().get(0).getAmountMinor();
  }

  private static List<ScreeningQuestion> ask(JobsApi jobs) throws ApiException {
    NumberQuestion years =
        new NumberQuestion()
            .key("years")
            .label("Years?")
            .requirement(ScreeningRequirement.MUST_HAVE)
            .operator(NumberOperator.AT_LEAST)
            .expected(5.0);
    OneOfQuestion city =
        new OneOfQuestion()
            .key("city")
            .label("City?")
            .requirement(ScreeningRequirement.NICE_TO_HAVE)
            .operator(OneOfOperator.ONE_OF)
            .expected(List.of(new AnswerValue("Lyon"), new AnswerValue("Paris")));
    JobCreate job =
        new JobCreate()
            .title("Interpreter")
            .screeningQuestions(
                List.of(new ScreeningQuestionInput(years), new ScreeningQuestionInput(city)));
    return jobs.createJob(job, null).getScreeningQuestions();
  }

  private static Object readNewEventType(EventsApi events) {
    try {
      return listEventTypes(events).get(0);
    } catch (ApiException exception) {
      return Map.of("error", exception.getMessage());
    }
  }

  private static List<String> listEventTypes(EventsApi api) throws ApiException {
    List<String> types = new ArrayList<>();
    EventList events = api.listEvents(null, null, null, null, null, null, null, null, null, null, null, null);
    for (Event event : events.getData()) {
      if (event.getActualInstance() instanceof ParticipantEvent created)
        types.add(created.getEventType().getValue());
      if (event.getActualInstance() instanceof PaymentEvent created)
        types.add(created.getEventType().getValue());
      if (event.getActualInstance() instanceof JobEvent created)
        types.add(created.getEventType().getValue());
    }
    return types;
  }

  private static ApiException failure(Request request) {
    try {
      request.send();
    } catch (ApiException exception) {
      return exception;
    }
    throw new IllegalStateException("The request did not fail");
  }
}
