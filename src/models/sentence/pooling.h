#pragma once

#include <string>
#include <vector>

#include "models/config/settings.h"
#include "posenc/models/sentence_stages.h"

namespace posenc {

/// The poolings that a Pooling's config.json lists, in the order of the result. Throws
/// c10::ValueError for a mode that is unknown.
std::vector<sentence::PoolingMode> pooling_modes(const Settings& config);

/// The name of a mode in files of flags: `mean_tokens` of `pooling_mode_mean_tokens`.
std::string pooling_name(sentence::PoolingMode mode);

/// The config.json of a Pooling with one mode, of tokens of this width.
nlohmann::json pooling_settings(const sentence::Pooling& stage, int64_t width);

}  // namespace posenc
