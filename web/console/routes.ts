/** Every address of the console. */
import type { Route } from './page.ts'
import { apiKeyRoutes } from './pages/api-keys.ts'
import { auditLogRoutes } from './pages/audit-log.ts'
import { bulkJobRoutes } from './pages/bulk-jobs.ts'
import { deliveryRoutes } from './pages/delivery.ts'
import { invitationRoutes } from './pages/invitation.ts'
import { meRoutes } from './pages/me.ts'
import { overviewRoutes } from './pages/overview.ts'
import { peopleRoutes } from './pages/people.ts'
import { recordRoutes } from './pages/records.ts'
import { requestRoutes } from './pages/request.ts'
import { requestsRoutes } from './pages/requests.ts'
import { settingsRoutes } from './pages/settings.ts'
import { signInRoutes } from './pages/sign-in.ts'
import { signUpRoutes } from './pages/sign-up.ts'
import { webhookRoutes } from './pages/webhook.ts'
import { webhookSecretRoutes } from './pages/webhook-secret.ts'
import { webhooksRoutes } from './pages/webhooks.ts'

export const routes: Route[] = [
  ...signInRoutes,
  ...signUpRoutes,
  ...invitationRoutes,
  ...overviewRoutes,
  ...requestsRoutes,
  ...requestRoutes,
  ...apiKeyRoutes,
  // Before those of one webhook: an address with an id in that place.
  ...bulkJobRoutes,
  ...webhooksRoutes,
  ...webhookRoutes,
  ...webhookSecretRoutes,
  ...deliveryRoutes,
  ...peopleRoutes,
  ...recordRoutes,
  ...meRoutes,
  ...settingsRoutes,
  ...auditLogRoutes,
]
