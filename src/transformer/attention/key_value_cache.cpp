#include "posenc/transformer/attention/key_value_cache.h"

#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/index_select.h>
#include <c10/core/InferenceMode.h>
#include <c10/util/Exception.h>

#include <algorithm>

#include "core/check.h"

namespace posenc {
namespace {

void check_writable(const at::Tensor& own) {
  TORCH_CHECK_VALUE(!own.defined() || !own.is_inference() || c10::InferenceMode::is_enabled(),
                    "[KeyValueCache] a cache that was made in InferenceMode must be used in it. "
                    "Got a call outside");
}

constexpr int64_t kFirstTokens = 16;  // room at construction
constexpr int64_t kBlock = 512;       // tokens that are dropped at a time

// Heads as (B, H, T, Dh) with room for this many tokens.
at::Tensor room_like(const at::Tensor& heads, int64_t tokens) {
  return at::empty({heads.size(0), heads.size(1), tokens, heads.size(3)}, heads.options());
}

}  // namespace

KeyValueCache::KeyValueCache(const functional::Heads& like, int64_t capacity,
                             std::optional<int64_t> window)
    : capacity_(capacity), window_(window) {
  check_positive("KeyValueCache", "capacity", capacity);
  TORCH_CHECK_VALUE(window.value_or(0) >= 0, "[KeyValueCache] window must not be negative. Got ",
                    *window);
  keys_ = room_like(like.key, std::min(capacity, kFirstTokens));
  values_ = room_like(like.value, std::min(capacity, kFirstTokens));
}

// The first token that `token` and those after it need, at the beginning of a block.
int64_t KeyValueCache::seen_from(int64_t token) const {
  return window_ && token > *window_ ? (token - *window_) / kBlock * kBlock : 0;
}

// Makes room for the tokens before `end`, and drops those that none after length_ sees.
void KeyValueCache::reserve(int64_t end) {
  const int64_t first = std::max(first_, seen_from(length_)), tokens = end - first;
  if (first == first_ && tokens <= keys_.size(2)) return;
  const c10::InferenceMode as_before(keys_.is_inference());  // it can then be used where it could
  const bool is_bounded = window_ && *window_ < capacity_ - kBlock;
  const int64_t most = is_bounded ? *window_ + kBlock : capacity_;  // of steps of one token
  const int64_t room =
      std::min(capacity_ - first, std::max(tokens, std::min(2 * keys_.size(2), most)));
  const auto moved = [&](const at::Tensor& from) {
    at::Tensor to = room_like(from, room);
    to.slice(2, 0, length_ - first).copy_(from.slice(2, first - first_, kept()));
    return to;
  };
  at::Tensor keys = moved(keys_);
  values_ = moved(values_);
  keys_ = std::move(keys);
  first_ = first;
}

KeyValueCache::KeyValueCache(const KeyValueCache& other)
    : first_(other.first_),
      length_(other.length_),
      capacity_(other.capacity_),
      window_(other.window_) {
  const at::NoGradGuard no_grad;
  if (!other.keys_.defined()) return;
  const auto copy = [&](const at::Tensor& from) {
    const at::Tensor to = at::empty(from.sizes(), from.options());
    to.slice(2, 0, kept()).copy_(from.slice(2, 0, kept()));
    return to;
  };
  keys_ = copy(other.keys_);
  values_ = copy(other.values_);
}

functional::Heads KeyValueCache::append(const functional::Heads& heads) {
  const auto check = [](const char* name, const at::Tensor& own, const at::Tensor& more) {
    TORCH_CHECK_VALUE(own.defined() && more.dim() == 4 && more.size(0) == own.size(0) &&
                          more.size(1) == own.size(1) && more.size(3) == own.size(3),
                      "[KeyValueCache] ", name, " must be (B, H, t, Dh) as in the cache, ",
                      own.defined() ? c10::str(own.sizes()) : "which has no room yet", ". Got ",
                      more.sizes());
    // Autocast converts what attention gets.
    TORCH_CHECK_TYPE(more.scalar_type() == own.scalar_type() ||
                         at::autocast::is_autocast_enabled(own.device().type()),
                     "[KeyValueCache] ", name, " must be ", own.scalar_type(),
                     " as in the cache, which is made after the module was converted. Got ",
                     more.scalar_type());
  };
  check("keys", keys_, heads.key);
  check("values", values_, heads.value);
  check_writable(keys_);
  const int64_t end = length_ + heads.key.size(2);
  TORCH_CHECK_VALUE(end <= capacity(), "[KeyValueCache] the capacity is ", capacity(),
                    " tokens. Got token ", end);
  TORCH_CHECK_VALUE(heads.value.size(2) == heads.key.size(2),
                    "[KeyValueCache] keys and values must have one length. Got ", heads.key.sizes(),
                    " and ", heads.value.sizes());
  const at::NoGradGuard no_grad;
  reserve(end);
  const auto of = [&](const at::Tensor& own, const at::Tensor& more) {
    own.slice(2, kept(), end - first_).copy_(more);
    return own.slice(2, 0, end - first_);
  };
  const functional::Heads all = {heads.query, of(keys_, heads.key), of(values_, heads.value)};
  const int64_t before = std::exchange(length_, end);
  if (before > 0) return all;
  try {
    reserve(end);  // what none after a prompt sees is not needed to take the prompt back either
  } catch (...) {
    length_ = before;
    throw;
  }
  return all;
}

functional::Heads KeyValueCache::room_for(int64_t rows) const {
  TORCH_CHECK_VALUE(keys_.defined(),
                    "[KeyValueCache] rows must be those of a cache with room. Got one without");
  TORCH_CHECK_VALUE(rows <= keys_.size(0), "[KeyValueCache] rows must be at most ", keys_.size(0),
                    ", those of the cache. Got ", rows);
  const auto room = [&](const at::Tensor& all) {
    return at::empty({rows, all.size(1), kept(), all.size(3)}, all.options());
  };
  return {{}, room(keys_), room(values_)};
}

bool KeyValueCache::shares_room(const KeyValueCache& other) const {
  const auto alike = [](const at::Tensor& a, const at::Tensor& b) {
    return a.size(1) == b.size(1) && a.size(3) == b.size(3) && a.scalar_type() == b.scalar_type() &&
           a.device() == b.device();
  };
  return kept() == other.kept() && alike(keys_, other.keys_) && alike(values_, other.values_);
}

KeyValueCache KeyValueCache::repeated(const at::Tensor& rows) const {
  const at::NoGradGuard no_grad;
  const auto of = [&](const at::Tensor& all) {
    return at::index_select(all.slice(2, 0, kept()), 0, rows);
  };
  const functional::Heads heads = {{}, of(keys_), of(values_)};
  KeyValueCache more({{}, heads.key.slice(2, 0, 0), heads.value.slice(2, 0, 0)}, capacity_,
                     window_);
  more.first_ = more.length_ = first_;
  more.append(heads);
  return more;
}

void KeyValueCache::select(const at::Tensor& rows) {
  TORCH_CHECK_VALUE(rows.dim() == 1, "[KeyValueCache] rows must be (B). Got ", rows.sizes());
  auto room = room_for(rows.size(0));
  select(rows, room);
}

void KeyValueCache::select(const at::Tensor& rows, functional::Heads& room) {
  check_writable(keys_);
  const at::NoGradGuard no_grad;
  at::index_select_out(room.key, keys_.slice(2, 0, kept()), 0, rows);
  at::index_select_out(room.value, values_.slice(2, 0, kept()), 0, rows);
  const auto keep = [&](at::Tensor& all, const at::Tensor& chosen) {
    all = all.narrow(0, 0, rows.size(0));
    all.slice(2, 0, kept()).copy_(chosen);
  };
  keep(keys_, room.key);
  keep(values_, room.value);
}

void KeyValueCache::truncate(int64_t length) {
  TORCH_CHECK_VALUE(length >= 0 && length <= length_, "[KeyValueCache] the length must lie in [0, ",
                    length_, "]. Got ", length);
  TORCH_CHECK_VALUE(length == 0 || first_ <= seen_from(length),
                    "[KeyValueCache] with a window the length must be 0 or that of a call, after "
                    "which no token was dropped. Got ",
                    length, " where those before ", first_, " were");
  length_ = length;
  if (length == 0) first_ = 0;
}

}  // namespace posenc
