#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "models/types/file_names.h"
#include "posenc/weights/load.h"
#include "weights/load/load_plan.h"
#include "weights/load/source.h"

namespace posenc {

/// The tensors of a published file that the model of a folder does not read: what transformers
/// ignores, buffers of old releases and other heads are ignored, those of modules that the model
/// does not compute are reported, and those inside a module that it computes are an error. A strict
/// model ignores buffers alone, and the rest is an error.
class Leftovers {
 public:
  using NameInFile = std::function<std::string(const std::string&)>;

  /// Of a model of these types. Both have to outlive it.
  Leftovers(const io::TensorSource& source, const LoadOptions& options,
            const std::vector<std::string>& model_types);

  /// Adds what a plan reads: the tensors of the model itself, whose names in the file begin with
  /// `prefix`, or of its head. `part` is put before the names of the module in the report, and
  /// `in_file` has the file's name of one that the plan knows, if it is another.
  void add_model(const io::LoadPlan& plan, const std::string& prefix, const std::string& part,
                 const NameInFile& in_file = std::identity());
  void add_head(const io::LoadPlan& plan, const std::string& part);
  /// A tensor that is read in another way, whose name in the module is `own`, if it is reported.
  void add_read(const std::string& name, const std::string& own = "");

  /// Makes each tensor that is not read and not ignored an error, as in transformers it would be
  /// one that the model computes without.
  void be_strict() { is_strict_ = true; }

  /// The names of all that has been read.
  const std::set<std::string>& read() const { return read_; }

  /// The patterns of the options' key map, by which `renamed` got its names, that no name took.
  void add_unused_patterns(const io::RenamedSource& renamed) {
    report_.unused_patterns = renamed.unused_patterns();
  }

  /// Sorts the others and gives the report to the options' owner. Throws WeightsError for those
  /// inside modules that are computed, unless the options allow them.
  void finish();

 private:
  std::string component_of(const std::string& name) const;
  bool is_ignored(const io::TensorSource::Entry& entry) const;
  bool is_inside(const std::string& name) const;
  bool is_of_head(const std::string& name) const;
  bool is_of_own_head(const std::string& name) const;
  void add(const io::LoadPlan& plan, const std::string& part,
           const NameInFile& in_file = std::identity());

  const io::TensorSource& source_;
  const LoadOptions& options_;
  std::vector<const hf::FileNames*> known_;
  std::set<std::string> prefixes_;        // of models
  std::set<std::string> read_, dropped_;  // names
  std::set<std::string> computed_;        // modules with a tensor that is read
  std::set<std::string> components_;      // of models
  std::map<std::string, std::string>
      heads_;  // the innermost module of all that is read, by component
  LoadReport report_;
  bool is_strict_ = false;
};

}  // namespace posenc
