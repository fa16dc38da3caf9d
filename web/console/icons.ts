/** The icons of the console. */
import { type Html, html } from '../shared/html.ts'

const ICONS: Record<string, string> = {
  overview: 'M2 9h4v5H2zM10 2h4v12h-4z',
  key: 'M10.5 2a3.5 3.5 0 1 1-3.2 4.9L2 12.2V14h2.5v-1.8h1.8v-1.8l1.9-1.9',
  webhook:
    'M8 5.5a2.5 2.5 0 1 0-2.2-1.3L4 9M4 9a2.5 2.5 0 1 0 2.4 3.3H11' +
    'M11.6 12.5a2.5 2.5 0 1 0-.4-4L9 5',
  requests: 'M1.5 8H4l2-5 4 10 2-5h2.5',
  events: 'M9 1.5 3 9h4l-1 5.5L13 7H9z',
  send: 'M14 2 7 9M14 2 9.5 14 7 9 2 6.5z',
  bell: 'M4 11V7a4 4 0 0 1 8 0v4l1.5 1.5h-11zM6.8 14h2.4',
  docs:
    'M8 3.5C6.5 2.4 4 2.3 2 3v10c2-.7 4.5-.6 6 .5 1.5-1.1 4-1.2 6-.5V3c-2-.7-4.5-.6-6 .5z' +
    'M8 3.5v10',
  people:
    'M6 7a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5zM1.5 14c0-2.5 2-4.5 4.5-4.5s4.5 2 4.5 4.5' +
    'M10.5 2.2a2.5 2.5 0 0 1 0 4.6M12 9.9c1.5.7 2.5 2.2 2.5 4.1',
  audit: 'M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2zM8 5v3l2 1.5',
  settings: 'M2 5h7M13 5h1M2 11h1M7 11h7M9 3.5v3M5 9.5v3',
  record: 'M3 2h10v12H3zM5.5 5h5M5.5 8h5M5.5 11h3',
  participants: 'M8 8a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM2.5 14c0-3 2.5-4.5 5.5-4.5s5.5 1.5 5.5 4.5',
  tasks: 'M2.5 2.5h11v11h-11zM5 8l2.2 2.2L11 6',
  jobs: 'M2 5h12v8.5H2zM5.5 5V2.5h5V5M2 9h12',
  'job-applications': 'M3 2h6l4 4v8H3zM9 2v4h4M5.5 10.5l1.5 1.5 3.5-3.5',
  exports: 'M8 2v8M5 7.5l3 3 3-3M2.5 11v3h11v-3',
  imports: 'M8 10V2M5 4.5l3-3 3 3M2.5 11v3h11v-3',
  payments: 'M2 4h12v9H2zM2 7h12M4.5 10.5h3',
  theme: 'M13.5 9.5A6 6 0 0 1 6.5 2.5a6 6 0 1 0 7 7z',
  search: 'M7 2.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9zM10.3 10.3 14 14',
  menu: 'M2 4h12M2 8h12M2 12h12',
  copy: 'M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3',
  out: 'M6 2H2.5v12H6M10 5l3 3-3 3M13 8H6',
  arrow: 'M3 8h10M9.5 4.5 13 8l-3.5 3.5',
}

/** An unknown name gets the icon `record`. */
export function icon(name: string): Html {
  const path = html`<path d="${ICONS[name] ?? ICONS.record}"/>`
  return html`<svg class="icon" viewBox="0 0 16 16" aria-hidden="true">${path}</svg>`
}
