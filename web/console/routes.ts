/** Every address of the console. */
import type { Route } from './page.ts'
import { overviewRoutes } from './pages/overview.ts'
import { signInRoutes } from './pages/sign-in.ts'

export const routes: Route[] = [...signInRoutes, ...overviewRoutes]
