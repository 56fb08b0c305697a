#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "models/config/settings.h"
#include "models/sentence/modules.h"
#include "posenc/models/sentence_folder.h"

namespace posenc {

/// What a model of vectors of tokens says outside its stages: PyLate in
/// config_sentence_transformers.json, and Stanford's ColBERT in artifact.metadata.
struct ColbertSettings {
  /// Markers by the name of the prompt that they begin.
  std::map<std::string, std::string> markers = {};
  /// Settings of the first stage, which its own file has unless they are here.
  nlohmann::json transformer = nlohmann::json::object();
  std::vector<SentenceStageFolder> stages = {};  ///< those after the listed ones
  bool has_all_stages = false;                   ///< whether they are in place of the listed ones
};

/// What a frozen folder has the projection of Stanford's ColBERT in, by the names that it has among
/// the weights of the encoder.
constexpr const char* kProjectionFile = "linear.safetensors";

/// Reads it. Throws c10::ValueError and WeightsError.
ColbertSettings colbert_settings(const char* caller, const SentenceModules& modules);

/// Whether a config_sentence_transformers.json is one of PyLate, whose older releases wrote no
/// model_type.
bool is_pylate(const Settings& config);

/// Whether a folder has a head for vectors of tokens beside a dense model, as that of bge-m3.
bool has_colbert_head(const std::string& folder);

/// The prompt with its marker in front, once.
std::string marked(const std::string& marker, const std::string& prompt);

}  // namespace posenc
