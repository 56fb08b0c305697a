#pragma once

#include <filesystem>
#include <functional>
#include <list>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "posenc/weights/state_dict.h"
#include "weights/common/file.h"

namespace posenc {

class Classifier;
class Encoder;
struct SavePretrainedOptions;

/// What the folder of a model has.
struct PretrainedFolder {
  nlohmann::json config;  ///< config.json
  StateDict tensors;      ///< in shards of at most `max_shard_bytes`
  int64_t max_shard_bytes = 0;
  std::map<std::string, std::string> texts;   ///< other files that are written, by their names
  std::map<std::string, std::string> copied;  ///< paths of files that are copied, by their names
  std::vector<std::string> removed;  ///< names of files that are removed, if they are there
};

/// A folder, with folders in it, of which no file takes its place before commit(). If that is not
/// reached, the folder is what it was, and one that was not there is not. Names of files are
/// relative to the folder. All functions throw WeightsError.
class FolderWriter {
 public:
  explicit FolderWriter(const std::string& folder);
  ~FolderWriter();
  FolderWriter(const FolderWriter&) = delete;
  FolderWriter& operator=(const FolderWriter&) = delete;

  /// Adds a file, with the folders around it. It replaces one that was added before.
  void add_text(const std::string& name, const std::string& text);
  void add_json(const std::string& name, const nlohmann::json& value);
  void add_weights(const std::string& name, const StateDict& tensors);
  void add_copy(const std::string& name, const std::string& path);
  /// Adds a file that `write` writes.
  void add_written(const std::string& name, const std::function<void(io::AtomicFile&)>& write);
  /// Adds the folder `inner` of a model, as transformers' save_pretrained() writes it: the tensors
  /// in model.safetensors, or in shards with an index, and config.json last. Weights of an earlier
  /// save that are not among them are removed.
  void add_model(const std::string& inner, const PretrainedFolder& contents);

  /// Puts the files in their places, in the order in which they were added; what is to be removed
  /// is removed before the last of them.
  void commit();

 private:
  struct File {
    File(std::string name_, const std::string& path) : name(std::move(name_)), file(path) {}
    std::string name;
    io::AtomicFile file;
  };
  template <typename Write>
  void add(const std::string& name, const Write& write);
  void make_folder(const std::filesystem::path& folder);
  void remove_others();
  bool has(const std::string& name) const;

  std::filesystem::path folder_;
  std::vector<std::filesystem::path> made_;  // folders, an inner one after those around it
  std::list<File> files_;
  std::set<std::string> models_, removed_;  // folders of models; names of files
  bool committed_ = false;
};

/// Writes the folder of a model alone. After an error the folder is what it was. Throws
/// WeightsError, naming the public function `caller`.
void write_pretrained(const char* caller, const std::string& folder,
                      const PretrainedFolder& contents);

/// What save_pretrained() writes into `folder` for an encoder. Nothing is written. Throws as
/// save_pretrained() does. `is_in_class`: the encoder is a module of the class that is saved, with
/// a head or without.
PretrainedFolder pretrained_folder_of(const Encoder& model, const std::string& folder,
                                      const SavePretrainedOptions& options,
                                      bool is_in_class = false);
PretrainedFolder pretrained_folder_of(const Classifier& model, const std::string& folder,
                                      const SavePretrainedOptions& options);

}  // namespace posenc
