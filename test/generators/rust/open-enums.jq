.components.schemas |= map_values(if has("x-extensible-enum") then del(.enum) else . end)
| del(.components.schemas[].discriminator)
