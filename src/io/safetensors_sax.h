#pragma once

#include <string>
#include <string_view>

#include "io/safetensors_header.h"

namespace posenc::io {

/// Fills `header` from the JSON text of a safetensors header. What JSON and the fields' types can
/// tell is checked here; sizes and ranges are the caller's affair. Throws WeightsError.
void parse_safetensors_json(std::string_view json, SafetensorsHeader& header);

/// `text` as a JSON string, quotes included. Throws WeightsError where it is not UTF-8.
std::string json_string(const std::string& text);

}  // namespace posenc::io
