#include "weights/torch/zip/inflate.h"

#include <zlib.h>

#include "base/text.h"
#include "weights/torch/zip/end.h"

namespace posenc::io {

std::string inflate(const ZipIndex& index, const ZipRecord& record, uint64_t limit) {
  constexpr uint16_t kDeflated = 8;
  if (record.bytes > limit || record.packed > limit) {
    throw WeightsError(WeightsErrorCode::LimitExceeded,
                       "has a record " + in_quotes(record.name) + " that is too large to unpack");
  }
  if (record.method != kDeflated) return index.read(record);
  const std::string packed = index.file().read(record.offset, record.packed);
  std::string bytes(record.bytes, '\0');
  z_stream stream{};
  // zlib does not write to its input; its interface predates const.
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  stream.next_out = reinterpret_cast<Bytef*>(bytes.data());
  stream.avail_out = static_cast<uInt>(bytes.size());
  int result = ::inflateInit2(&stream, -MAX_WBITS);  // no header: the zip record is the header
  if (result == Z_OK) result = ::inflate(&stream, Z_FINISH);
  const bool whole = result == Z_STREAM_END && stream.avail_out == 0;
  ::inflateEnd(&stream);
  if (!whole) {
    throw damaged_zip("record " + in_quotes(record.name) + " does not unpack to its size");
  }
  return bytes;
}

}  // namespace posenc::io
