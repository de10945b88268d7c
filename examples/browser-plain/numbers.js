/**
 * A schema without a library: an object whose named properties are numbers. Zod, Valibot and ArkType implement this
 * interface (https://standardschema.dev); a page without a bundler writes the ten lines itself, or hosts one of them.
 */
export function numbers(...names) {
  return {
    '~standard': {
      version: 1,
      vendor: 'browser-plain',
      validate(value) {
        const issues = names.filter((name) => !Number.isFinite(value?.[name])).map(notANumber)
        return issues.length > 0 ? { issues } : { value: Object.fromEntries(names.map((name) => [name, value[name]])) }
      },
    },
  }
}

function notANumber(name) {
  return { message: 'must be a number', path: [name] }
}
