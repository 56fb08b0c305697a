#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "posenc/io/state_dict.h"

namespace posenc {

/// Makes a folder with those around it, unless it is there. Throws WeightsError.
void make_folder(const std::string& folder);

/// Writes a file of settings, whole or not at all. Throws WeightsError.
void write_json_file(const std::string& path, const nlohmann::json& value);

/// Writes the folder of a model as transformers' save_pretrained() does: the tensors in
/// model.safetensors, or in shards of at most `max_shard_bytes` each with an index, then
/// config.json. Weights of an earlier save that are not among them are removed. Throws
/// WeightsError, naming the public function `caller`.
void write_pretrained(const char* caller, const std::string& folder, const nlohmann::json& config,
                      const StateDict& tensors, int64_t max_shard_bytes);

}  // namespace posenc
