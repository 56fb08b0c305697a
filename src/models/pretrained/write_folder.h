#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "posenc/io/state_dict.h"

namespace posenc {

/// Makes a folder with those around it, unless it is there. Throws WeightsError.
void make_folder(const std::string& folder);

/// Writes a file of settings, whole or not at all. Throws WeightsError.
void write_json_file(const std::string& path, const nlohmann::json& value);

/// What the folder of a model has.
struct PretrainedFolder {
  nlohmann::json config;  ///< config.json
  StateDict tensors;      ///< in shards of at most `max_shard_bytes`
  int64_t max_shard_bytes = 0;
  std::map<std::string, std::string> texts;  ///< other files that are written, by their names
  std::vector<std::string> copied;           ///< paths of files that are copied as they are
  std::vector<std::string> removed;          ///< names of files that are removed, if they are there
};

/// Writes the folder as transformers' save_pretrained() does: the tensors in model.safetensors, or
/// in shards with an index. No file takes its place before all are written, and config.json is the
/// last; weights of an earlier save that are not among them are removed. After an error the folder
/// is what it was. Throws WeightsError, naming the public function `caller`.
void write_pretrained(const char* caller, const std::string& folder,
                      const PretrainedFolder& contents);

}  // namespace posenc
