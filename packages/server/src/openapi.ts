import { z } from 'zod'
import type { Settings } from './options'
import type { Route } from './route'
import { problemSchema } from './wire'
import type { Messages } from './wire-events'

type Json = Record<string, unknown>

/** The OpenAPI document of a table of routes. */
export function describeApi(routes: readonly Route[], { basePath }: Pick<Settings, 'basePath'>): Json {
  const components = new Components()
  const paths: Record<string, Json> = {}
  for (const route of routes) {
    const path = route.path.replace(':id', '{id}')
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: operationOf(route, components) }
  }
  return {
    openapi: '3.1.0',
    info: { title: 'durably', version: '1' },
    servers: [{ url: basePath === '' ? '/' : basePath }],
    paths,
    components: { schemas: components.schemas },
  }
}

/** Schemas that have an id are described once. */
class Components {
  readonly schemas: Record<string, unknown> = {}

  describe(schema: z.ZodType, io: 'input' | 'output'): Json {
    const text = JSON.stringify(z.toJSONSchema(schema, { io })).replaceAll('"#/$defs/', '"#/components/schemas/')
    const { $defs = {}, $schema: _, ...described } = JSON.parse(text) as Json
    Object.assign(this.schemas, $defs)
    const { id } = described
    if (typeof id !== 'string') return described
    this.schemas[id] = described
    return { $ref: `#/components/schemas/${id}` }
  }
}

function operationOf(route: Route, components: Components): Json {
  const { action, summary, query, body } = route
  const content = body && { 'application/json': { schema: components.describe(body, 'input') } }
  const parameters = [
    ...idParameter(route),
    ...(query === null ? [] : queryParameters(components.describe(query, 'input'))),
  ]
  return {
    operationId: operationIdOf(route),
    summary,
    description: action === null ? 'The address is the permission.' : `Needs the action "${action}".`,
    parameters,
    ...(content && { requestBody: { required: true, content } }),
    responses: responsesOf(route, components),
  }
}

function operationIdOf({ method, path }: Route): string {
  return [method.toLowerCase(), ...path.split(/[/:.]/).filter(Boolean)].join('_')
}

function idParameter({ isAboutRun }: Route): readonly Json[] {
  return isAboutRun ? [{ name: 'id', in: 'path', required: true, schema: { type: 'string' } }] : []
}

function queryParameters({ properties = {}, required = [] }: Json): readonly Json[] {
  return Object.entries(properties as Record<string, Json>).map(([name, schema]) => ({
    name,
    in: 'query',
    required: (required as readonly string[]).includes(name),
    // `labels[team]=red`
    ...(schema['type'] === 'object' && { style: 'deepObject', explode: true }),
    schema,
  }))
}

function responsesOf({ status, output }: Route, components: Components): Json {
  if (output === 'page') return { default: pageOf(components) }
  const problems = {
    description: 'A problem.',
    content: contentOf('application/problem+json', problemSchema, components),
  }
  return { [status]: { description: 'Done.', ...successOf(output, components) }, default: problems }
}

function pageOf(components: Components): Json {
  const problems = contentOf('application/problem+json', problemSchema, components)
  return {
    description: 'A page for people, or a problem.',
    content: { 'text/html': { schema: { type: 'string' } }, ...problems },
  }
}

function successOf(output: Exclude<Route['output'], 'page'>, components: Components): Json {
  if (output === null) return {}
  if (output instanceof z.ZodType) return { content: contentOf('application/json', output, components) }
  return { content: { 'text/event-stream': streamOf(output, components) } }
}

/** OpenAPI 3.1 has no words for the messages of a stream: by their `event`, what their `data` are. */
function streamOf({ messages }: Messages, components: Components): Json {
  const described = Object.entries(messages).map(([event, schema]) => [event, components.describe(schema, 'output')])
  return { schema: { type: 'string' }, 'x-messages': Object.fromEntries(described) }
}

function contentOf(type: string, schema: z.ZodType, components: Components): Json {
  return { [type]: { schema: components.describe(schema, 'output') } }
}
