/** How the account is doing today. */
import { html } from '../../shared/html.ts'
import { anyUser, get, type Page, type Route } from '../page.ts'

export const overviewRoutes: Route[] = [get('', anyUser, overview)]

function overview(): Page {
  return { title: 'Overview', body: html`` }
}
