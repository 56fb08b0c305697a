#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "posenc/weights/manifest.h"
#include "weights/common/budget.h"
#include "weights/common/keyed_hash.h"
#include "weights/torch/tensor_search.h"
#include "weights/torch/tensors.h"

namespace posenc::io {

/// The names that a TorchScript class registers; old files do not list the buffers.
struct ScriptClass {
  bool is_module = false;
  std::optional<NameSet> parameters;
  std::optional<NameSet> buffers;
};

/// The class with a qualified name, or null if its code could not be read.
using FindScriptClass = std::function<const ScriptClass*(const std::string& name)>;

/// Lists the objects below `root` in a manifest: dense tensors, plain values, and everything else
/// as opaque; names are joined by ".". A tensor that cannot be read, or whose joined name is not
/// unique, is opaque and does not keep the others from being read. With `find_class`, objects of
/// TorchScript classes are traversed as modules. Throws WeightsError.
class StateDictWalker {
 public:
  StateDictWalker(TorchTensors& objects, TensorList& list, Manifest& manifest, Budget& budget)
      : objects_(objects), search_(objects), list_(list), manifest_(manifest), budget_(budget) {}

  void run(PickleId root, const FindScriptClass& find_class = nullptr);

 private:
  // Where a tensor is found decides whether it is one of the file's.
  enum class Context { Plain, ModuleAttribute, InsideAttribute };

  // A container that is being traversed. A call of a dict class has its items in two places: in its
  // first argument, and set afterwards.
  struct Frame {
    enum class Form { Mapping, Pairs, Sequence };
    uint32_t at;
    Form form;
    PickleId later;  // the object with further items, or kNoObject
    std::size_t name_size;
    Context context;
    const ScriptClass* script;
    bool listed;  // whether its values are listed one by one
    uint64_t index = 0;
  };

  void visit(PickleId id, Context context, const ScriptClass* script, std::string_view last_name,
             bool listed);
  bool enter(PickleId id, Context context, bool listed);
  bool enter_unknown(PickleId id, bool listed);
  void push(PickleId source, PickleId later, Frame::Form form, Context context,
            const ScriptClass* script, bool listed);
  bool step();
  void add_tensor(ManifestTensor tensor, Context context, const ScriptClass* script,
                  const std::string& last_name);
  uint64_t entry_bytes(const std::string& text) const;
  void add_object(PickleId id, Context context, const ScriptClass* script,
                  std::string_view last_name);
  static std::optional<TensorRole> role_of(Context context, const ScriptClass* script,
                                           const std::string& last_name);
  void add_opaque(std::string text, EntryKind kind = EntryKind::Other);
  void drop_ambiguous_names();
  void add_value(std::string text, bool listed);

  TorchTensors& objects_;
  TensorSearch search_;
  TensorList& list_;
  Manifest& manifest_;
  Budget& budget_;
  const FindScriptClass* find_class_ = nullptr;
  std::string name_;
  std::vector<Frame> frames_;
  NameSet clashing_;  // names that several tensors share
};

}  // namespace posenc::io
