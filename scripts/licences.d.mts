/** The licences of the packages to which these files belong. */
export function licencesOf(inputs: readonly string[]): string
