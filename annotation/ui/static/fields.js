// The fields that settings of a study are drawn as (setting.html).

// What a field holds: a text, or whether a switch is on.
export function valueOf(field) {
  return field.type === 'checkbox' ? field.checked : field.value;
}
