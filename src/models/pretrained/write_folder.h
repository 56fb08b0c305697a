#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "posenc/io/state_dict.h"

namespace posenc {

/// Writes the folder of a model as transformers' save_pretrained() does: the tensors in
/// model.safetensors, or in shards of at most `max_shard_bytes` each with an index, then
/// config.json. Weights of an earlier save that are not among them are removed. Throws
/// WeightsError, naming the public function `caller`.
void write_pretrained(const char* caller, const std::string& folder, const nlohmann::json& config,
                      const StateDict& tensors, int64_t max_shard_bytes);

}  // namespace posenc
