/** Every path of the console. */
import { apiKeyRoutes } from './account/api-keys.ts'
import { invitationRoutes } from './account/invitation.ts'
import { meRoutes } from './account/me.ts'
import { settingsRoutes } from './account/settings.ts'
import { signInRoutes } from './account/sign-in.ts'
import { signUpRoutes } from './account/sign-up.ts'
import { eventRoutes } from './events/event.ts'
import { eventsRoutes } from './events/events.ts'
import { overviewRoutes } from './overview.ts'
import type { Route } from './page.ts'
import { auditLogRoutes } from './people/audit-log.ts'
import { inviteRoutes } from './people/invite.ts'
import { peopleRoutes } from './people/people.ts'
import { personRoutes } from './people/person-page.ts'
import { importRoutes } from './records/imports.ts'
import { recordRoutes } from './records/record-routes.ts'
import { requestRoutes } from './requests/request.ts'
import { requestsRoutes } from './requests/requests.ts'
import { searchRoutes } from './search/search.ts'
import { bulkJobRoutes } from './webhooks/bulk-jobs.ts'
import { bulkStartRoutes } from './webhooks/bulk-start.ts'
import { deliveriesRoutes } from './webhooks/deliveries.ts'
import { deliveryRoutes } from './webhooks/delivery.ts'
import { webhookEditRoutes } from './webhooks/edit.ts'
import { webhookLogRoutes } from './webhooks/log.ts'
import { notificationRoutes } from './webhooks/notifications.ts'
import { webhookSecretRoutes } from './webhooks/secret.ts'
import { webhookSettingsRoutes } from './webhooks/settings.ts'
import { webhooksRoutes } from './webhooks/webhooks.ts'

export const routes: Route[] = [
  ...signInRoutes,
  ...signUpRoutes,
  ...invitationRoutes,
  ...overviewRoutes,
  ...searchRoutes,
  ...requestsRoutes,
  ...requestRoutes,
  ...eventsRoutes,
  ...eventRoutes,
  ...apiKeyRoutes,
  // Before the routes of one webhook, which would take `jobs` for the ID of a webhook.
  ...bulkJobRoutes,
  ...bulkStartRoutes,
  ...webhooksRoutes,
  ...webhookEditRoutes,
  ...webhookLogRoutes,
  ...webhookSettingsRoutes,
  ...webhookSecretRoutes,
  ...notificationRoutes,
  ...deliveriesRoutes,
  ...deliveryRoutes,
  ...peopleRoutes,
  // Before the routes of one user, which would take `invite` for the ID of a user.
  ...inviteRoutes,
  ...personRoutes,
  // Before the routes of all records, which have a form with fields at the same path.
  ...importRoutes,
  ...recordRoutes,
  ...meRoutes,
  ...settingsRoutes,
  ...auditLogRoutes,
]
