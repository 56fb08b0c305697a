#include "models/sentence/pooling.h"

#include <algorithm>

#include "core/named.h"

namespace posenc {
namespace {

using sentence::PoolingMode;

struct PoolingRow {
  const char* name;  // in a list of modes
  const char* flag;  // after pooling_mode_
  PoolingMode mode;
};

// In the order in which flags are concatenated, whatever theirs is.
constexpr PoolingRow kPoolings[] = {
    {"cls", "cls_token", PoolingMode::CLS},
    {"max", "max_tokens", PoolingMode::Max},
    {"mean", "mean_tokens", PoolingMode::Mean},
    {"mean_sqrt_len_tokens", "mean_sqrt_len_tokens", PoolingMode::MeanSqrtLength},
    {"weightedmean", "weightedmean_tokens", PoolingMode::WeightedMean},
    {"lasttoken", "lasttoken", PoolingMode::LastToken},
};

constexpr const char* kMode = "pooling_mode";

PoolingMode mode_of(const Settings& config, const nlohmann::json& name) {
  const auto* row =
      name.is_string() ? detail::find_named(kPoolings, name.get<std::string>()) : nullptr;
  if (row == nullptr) {
    config.refuse(kMode,
                  "must be cls, max, mean, mean_sqrt_len_tokens, weightedmean or lasttoken, or a "
                  "list of them");
  }
  return row->mode;
}

const PoolingRow& row_of(PoolingMode mode) {
  return *std::find_if(std::begin(kPoolings), std::end(kPoolings),
                       [&](const PoolingRow& row) { return row.mode == mode; });
}

}  // namespace

std::vector<PoolingMode> pooling_modes(const Settings& config) {
  std::vector<PoolingMode> modes;
  if (config.has(kMode)) {
    const nlohmann::json& given = config.value(kMode);
    for (const auto& name : given.is_array() ? given : nlohmann::json::array({given})) {
      modes.push_back(mode_of(config, name));
    }
    if (modes.empty()) config.refuse(kMode, "must have a mode");
    return modes;
  }
  for (const PoolingRow& row : kPoolings) {
    if (config.flag(std::string("pooling_mode_") + row.flag, false)) modes.push_back(row.mode);
  }
  if (modes.empty()) modes.push_back(PoolingMode::Mean);
  return modes;
}

std::string pooling_word(PoolingMode mode) { return row_of(mode).name; }
std::string pooling_name(PoolingMode mode) { return row_of(mode).flag; }

}  // namespace posenc
