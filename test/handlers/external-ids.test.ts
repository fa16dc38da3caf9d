/** The external IDs of all resources that have them. */
import { describe, expect, test } from 'vitest'
import { resources } from '../../generated/resources.ts'
import { sharedApp } from '../helpers.ts'
import { newBody, newRecord } from '../resources.ts'
import { errorOf } from './new-records.ts'

const app = sharedApp()

const TAKEN = { status: 422, fields: ['external_id'] }

describe.each(resources.filter(({ creation }) => creation?.properties?.external_id))(
  '$slug',
  ({ slug, type }) => {
    const path = `/${slug}`

    test('a create or update with a taken external ID → 422, and nothing changes', async () => {
      const client = await app.newClient()
      await newRecord(client, type, { external_id: 'crm-1' })
      const body = await newBody(client, type)
      expect(await errorOf(client.post(path, { ...body, external_id: 'crm-1' }))).toEqual(TAKEN)
      const other = await newRecord(client, type, { external_id: 'CRM-1' })
      const url = `${path}/${other.id}`
      expect(await errorOf(client.patch(url, { external_id: 'crm-1' }))).toEqual(TAKEN)
      expect((await client.get(url)).body).toEqual(other)
      expect((await client.get(path)).body.meta.total).toBe(2)
    })

    test('another account, a freed external ID and no external ID → accepted', async () => {
      const client = await app.newClient()
      const first = await newRecord(client, type, { external_id: 'crm-1' })
      await newRecord(await app.newClient(), type, { external_id: 'crm-1' })
      await client.patch(`${path}/${first.id}`, { external_id: null })
      await newRecord(client, type, { external_id: null })
      const next = await newRecord(client, type, { external_id: 'crm-1' })
      const found = await client.get(`${path}?filter[external_id]=crm-1`)
      expect(found.body.data).toEqual([next])
    })

    test('the same external ID twice at once → one record', async () => {
      const client = await app.newClient()
      const bodies = [await newBody(client, type), await newBody(client, type)]
      const responses = await Promise.all(
        bodies.map((body) => client.post(path, { ...body, external_id: 'crm-1' })),
      )
      expect(responses.map(({ status }) => status).sort()).toEqual([201, 422])
    })
  },
)
