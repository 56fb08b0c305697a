#pragma once

#include <string>

#include "posenc/weights/load.h"

namespace posenc {

/// Where the config.json and the weights of a model are, and how they are loaded.
struct AdaptedFolder {
  std::string folder;   ///< of the model
  LoadOptions options;  ///< with all adapters
};

/// The folder of a model, with the adapter that is in it if there is one. That of an adapter alone
/// stands for the model that it belongs to, LoadOptions::base or the one that it names, with the
/// adapter. Throws WeightsError, naming `caller`, if that is no folder here; c10::ValueError for a
/// base of what is not an adapter.
AdaptedFolder adapted_folder(const char* caller, const std::string& folder,
                             const LoadOptions& options);

/// The folder with the model's config.json alone.
std::string config_folder(const char* caller, const std::string& folder, const std::string& base);

/// The folder of a tokenizer: this one, or without one in it that of the model.
std::string tokenizer_folder(const char* caller, const std::string& folder,
                             const std::string& base);

/// Throws c10::ValueError, naming `caller`, for options with adapters where none can be added.
void refuse_adapters(const char* caller, const LoadOptions& options, const char* why);

}  // namespace posenc
