#include "weights/common/json.h"

namespace posenc::io {

std::string json_string(const std::string& text) {
  try {
    return nlohmann::json(text).dump();
  } catch (const nlohmann::json::exception&) {
    throw WeightsError(WeightsErrorCode::Unsupported,
                       "must have names and metadata in UTF-8. Got " + in_quotes(text));
  }
}

}  // namespace posenc::io
