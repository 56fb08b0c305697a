#pragma once

#include <nlohmann/json.hpp>

namespace posenc {

/// Options as JSON, field by field, by the names of POSENC_FIELDS: enumerators and alternatives by
/// their names, numbers that are not finite as text. Without encoder::Origin, which changes nothing
/// that is computed.
template <typename Options>
nlohmann::json json_of(const Options& options);

/// The options. Throws c10::ValueError, naming the field, for one that is unknown, missing, or of
/// another type.
template <typename Options>
Options options_from(const nlohmann::json& json);

}  // namespace posenc
