#include "posenc/nn/attention/key_value_cache.h"

#include <ATen/ops/empty.h>
#include <c10/util/Exception.h>

#include "posenc/core/check.h"

namespace posenc {

KeyValueCache::KeyValueCache(const functional::Heads& like, int64_t capacity) {
  check_positive("KeyValueCache", "capacity", capacity);
  const auto room = [&](const at::Tensor& heads) {  // (B, H, T, Dh)
    return at::empty({heads.size(0), heads.size(1), capacity, heads.size(3)}, heads.options());
  };
  keys_ = room(like.key);
  values_ = room(like.value);
}

functional::Heads KeyValueCache::append(const functional::Heads& heads) {
  const auto check = [](const char* name, const at::Tensor& own, const at::Tensor& more) {
    TORCH_CHECK_VALUE(own.defined() && more.dim() == 4 && more.size(0) == own.size(0) &&
                          more.size(1) == own.size(1) && more.size(3) == own.size(3),
                      "[KeyValueCache] ", name, " must be (B, H, t, Dh) as in the cache, ",
                      own.defined() ? c10::str(own.sizes()) : "which has no room yet", ". Got ",
                      more.sizes());
  };
  check("keys", keys_, heads.key);
  check("values", values_, heads.value);
  const int64_t end = length_ + heads.key.size(2);
  TORCH_CHECK_VALUE(end <= capacity(), "[KeyValueCache] the capacity is ", capacity(),
                    " tokens. Got token ", end);
  TORCH_CHECK_VALUE(heads.value.size(2) == heads.key.size(2),
                    "[KeyValueCache] keys and values must have one length. Got ", heads.key.sizes(),
                    " and ", heads.value.sizes());
  keys_.slice(2, length_, end).copy_(heads.key);
  values_.slice(2, length_, end).copy_(heads.value);
  length_ = end;
  return {heads.query, keys_.slice(2, 0, end), values_.slice(2, 0, end)};
}

void KeyValueCache::select(const at::Tensor& rows) {
  for (at::Tensor* tensor : {&keys_, &values_}) {
    const at::Tensor selected = tensor->slice(2, 0, length_).index_select(0, rows);
    *tensor = tensor->narrow(0, 0, rows.size(0));
    tensor->slice(2, 0, length_).copy_(selected);
  }
}

}  // namespace posenc
