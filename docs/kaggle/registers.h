/* Registers of the SmartNIC kaggle. Made by python -m gen.documents --config kaggle --output DIR. */
#ifndef EMBER_KAGGLE_REGISTERS_H
#define EMBER_KAGGLE_REGISTERS_H

/* Addresses are bytes from the start of the register block. What is read only has
   its value in this configuration as _RESET where that never changes. */

/* magic (ro): identity: the bytes "EMBR" */
#define EMBER_MAGIC 0x0000u
#define EMBER_MAGIC_WIDTH 32u
#define EMBER_MAGIC_MASK 0xffffffffu
#define EMBER_MAGIC_RESET 0x52424d45u

/* version (ro): version of formats and registers */
#define EMBER_VERSION 0x0004u
#define EMBER_VERSION_WIDTH 32u
#define EMBER_VERSION_MASK 0xffffffffu
#define EMBER_VERSION_RESET 0x1u

/* counter_base (ro): address of the first counter */
#define EMBER_COUNTER_BASE 0x0008u
#define EMBER_COUNTER_BASE_WIDTH 32u
#define EMBER_COUNTER_BASE_MASK 0xffffffffu
#define EMBER_COUNTER_BASE_RESET 0x1000u

/* counter_count (ro): number of registers of counters */
#define EMBER_COUNTER_COUNT 0x000cu
#define EMBER_COUNTER_COUNT_WIDTH 32u
#define EMBER_COUNTER_COUNT_MASK 0xffffffffu
#define EMBER_COUNTER_COUNT_RESET 0xc5u

/* config_base (ro): address of the first register of this configuration */
#define EMBER_CONFIG_BASE 0x0010u
#define EMBER_CONFIG_BASE_WIDTH 32u
#define EMBER_CONFIG_BASE_MASK 0xffffffffu
#define EMBER_CONFIG_BASE_RESET 0x40u

/* config_count (ro): number of registers of this configuration */
#define EMBER_CONFIG_COUNT 0x0014u
#define EMBER_CONFIG_COUNT_WIDTH 32u
#define EMBER_CONFIG_COUNT_MASK 0xffffffffu
#define EMBER_CONFIG_COUNT_RESET 0x20u

/* control_base (ro): address of the first control register */
#define EMBER_CONTROL_BASE 0x0018u
#define EMBER_CONTROL_BASE_WIDTH 32u
#define EMBER_CONTROL_BASE_MASK 0xffffffffu
#define EMBER_CONTROL_BASE_RESET 0x100u

/* control_count (ro): number of control registers */
#define EMBER_CONTROL_COUNT 0x001cu
#define EMBER_CONTROL_COUNT_WIDTH 32u
#define EMBER_CONTROL_COUNT_MASK 0xffffffffu
#define EMBER_CONTROL_COUNT_RESET 0x34u

/* table_base (ro): address of table_index, before the words of a descriptor */
#define EMBER_TABLE_BASE 0x0020u
#define EMBER_TABLE_BASE_WIDTH 32u
#define EMBER_TABLE_BASE_MASK 0xffffffffu
#define EMBER_TABLE_BASE_RESET 0x280u

/* table_words (ro): words of a table descriptor */
#define EMBER_TABLE_WORDS 0x0024u
#define EMBER_TABLE_WORDS_WIDTH 32u
#define EMBER_TABLE_WORDS_MASK 0xffffffffu
#define EMBER_TABLE_WORDS_RESET 0x5u

/* channel_base (ro): address of the first word of the streams' states */
#define EMBER_CHANNEL_BASE 0x0028u
#define EMBER_CHANNEL_BASE_WIDTH 32u
#define EMBER_CHANNEL_BASE_MASK 0xffffffffu
#define EMBER_CHANNEL_BASE_RESET 0x300u

/* channel_count (ro): number of streams, 32 a word */
#define EMBER_CHANNEL_COUNT 0x002cu
#define EMBER_CHANNEL_COUNT_WIDTH 32u
#define EMBER_CHANNEL_COUNT_MASK 0xffffffffu
#define EMBER_CHANNEL_COUNT_RESET 0x48u

/* register_count (ro): number of registers from config_base on */
#define EMBER_REGISTER_COUNT 0x0030u
#define EMBER_REGISTER_COUNT_WIDTH 32u
#define EMBER_REGISTER_COUNT_MASK 0xffffffffu
#define EMBER_REGISTER_COUNT_RESET 0x127u

/* register_map (ro): CRC-32 of name, address, width and access of those: tells one map from another */
#define EMBER_REGISTER_MAP 0x0034u
#define EMBER_REGISTER_MAP_WIDTH 32u
#define EMBER_REGISTER_MAP_MASK 0xffffffffu
#define EMBER_REGISTER_MAP_RESET 0x7d943873u

/* config_nodes (ro): nodes of this configuration */
#define EMBER_CONFIG_NODES 0x0040u
#define EMBER_CONFIG_NODES_WIDTH 32u
#define EMBER_CONFIG_NODES_MASK 0xffffffffu
#define EMBER_CONFIG_NODES_RESET 0x10u

/* config_tables (ro): tables of this configuration */
#define EMBER_CONFIG_TABLES 0x0044u
#define EMBER_CONFIG_TABLES_WIDTH 32u
#define EMBER_CONFIG_TABLES_MASK 0xffffffffu
#define EMBER_CONFIG_TABLES_RESET 0x40u

/* config_max_dimension (ro): max_dimension of this configuration */
#define EMBER_CONFIG_MAX_DIMENSION 0x0048u
#define EMBER_CONFIG_MAX_DIMENSION_WIDTH 32u
#define EMBER_CONFIG_MAX_DIMENSION_MASK 0xffffffffu
#define EMBER_CONFIG_MAX_DIMENSION_RESET 0x10u

/* config_local_cache_rows (ro): local_cache_rows of this configuration */
#define EMBER_CONFIG_LOCAL_CACHE_ROWS 0x004cu
#define EMBER_CONFIG_LOCAL_CACHE_ROWS_WIDTH 32u
#define EMBER_CONFIG_LOCAL_CACHE_ROWS_MASK 0xffffffffu
#define EMBER_CONFIG_LOCAL_CACHE_ROWS_RESET 0x8000u

/* config_local_cache_ways (ro): local_cache_ways of this configuration */
#define EMBER_CONFIG_LOCAL_CACHE_WAYS 0x0050u
#define EMBER_CONFIG_LOCAL_CACHE_WAYS_WIDTH 32u
#define EMBER_CONFIG_LOCAL_CACHE_WAYS_MASK 0xffffffffu
#define EMBER_CONFIG_LOCAL_CACHE_WAYS_RESET 0x8u

/* config_remote_cache_rows (ro): remote_cache_rows of this configuration */
#define EMBER_CONFIG_REMOTE_CACHE_ROWS 0x0054u
#define EMBER_CONFIG_REMOTE_CACHE_ROWS_WIDTH 32u
#define EMBER_CONFIG_REMOTE_CACHE_ROWS_MASK 0xffffffffu
#define EMBER_CONFIG_REMOTE_CACHE_ROWS_RESET 0x4000u

/* config_remote_cache_ways (ro): remote_cache_ways of this configuration */
#define EMBER_CONFIG_REMOTE_CACHE_WAYS 0x0058u
#define EMBER_CONFIG_REMOTE_CACHE_WAYS_WIDTH 32u
#define EMBER_CONFIG_REMOTE_CACHE_WAYS_MASK 0xffffffffu
#define EMBER_CONFIG_REMOTE_CACHE_WAYS_RESET 0x8u

/* config_remote_in_flight (ro): remote_in_flight of this configuration */
#define EMBER_CONFIG_REMOTE_IN_FLIGHT 0x005cu
#define EMBER_CONFIG_REMOTE_IN_FLIGHT_WIDTH 32u
#define EMBER_CONFIG_REMOTE_IN_FLIGHT_MASK 0xffffffffu
#define EMBER_CONFIG_REMOTE_IN_FLIGHT_RESET 0x400u

/* config_misses_in_flight (ro): misses_in_flight of this configuration */
#define EMBER_CONFIG_MISSES_IN_FLIGHT 0x0060u
#define EMBER_CONFIG_MISSES_IN_FLIGHT_WIDTH 32u
#define EMBER_CONFIG_MISSES_IN_FLIGHT_MASK 0xffffffffu
#define EMBER_CONFIG_MISSES_IN_FLIGHT_RESET 0x400u

/* config_dedupe_keys (ro): dedupe_keys of this configuration */
#define EMBER_CONFIG_DEDUPE_KEYS 0x0064u
#define EMBER_CONFIG_DEDUPE_KEYS_WIDTH 32u
#define EMBER_CONFIG_DEDUPE_KEYS_MASK 0xffffffffu
#define EMBER_CONFIG_DEDUPE_KEYS_RESET 0x1000u

/* config_dedupe_ways (ro): dedupe_ways of this configuration */
#define EMBER_CONFIG_DEDUPE_WAYS 0x0068u
#define EMBER_CONFIG_DEDUPE_WAYS_WIDTH 32u
#define EMBER_CONFIG_DEDUPE_WAYS_MASK 0xffffffffu
#define EMBER_CONFIG_DEDUPE_WAYS_RESET 0x8u

/* config_dedupe_in_flight (ro): dedupe_in_flight of this configuration */
#define EMBER_CONFIG_DEDUPE_IN_FLIGHT 0x006cu
#define EMBER_CONFIG_DEDUPE_IN_FLIGHT_WIDTH 32u
#define EMBER_CONFIG_DEDUPE_IN_FLIGHT_MASK 0xffffffffu
#define EMBER_CONFIG_DEDUPE_IN_FLIGHT_RESET 0x400u

/* config_scatter_entries (ro): scatter_entries of this configuration */
#define EMBER_CONFIG_SCATTER_ENTRIES 0x0070u
#define EMBER_CONFIG_SCATTER_ENTRIES_WIDTH 32u
#define EMBER_CONFIG_SCATTER_ENTRIES_MASK 0xffffffffu
#define EMBER_CONFIG_SCATTER_ENTRIES_RESET 0x1000u

/* config_hold_vectors (ro): hold_vectors of this configuration */
#define EMBER_CONFIG_HOLD_VECTORS 0x0074u
#define EMBER_CONFIG_HOLD_VECTORS_WIDTH 32u
#define EMBER_CONFIG_HOLD_VECTORS_MASK 0xffffffffu
#define EMBER_CONFIG_HOLD_VECTORS_RESET 0x1000u

/* config_dense_vectors (ro): dense_vectors of this configuration */
#define EMBER_CONFIG_DENSE_VECTORS 0x0078u
#define EMBER_CONFIG_DENSE_VECTORS_WIDTH 32u
#define EMBER_CONFIG_DENSE_VECTORS_MASK 0xffffffffu
#define EMBER_CONFIG_DENSE_VECTORS_RESET 0x100u

/* config_query_beats (ro): query_beats of this configuration */
#define EMBER_CONFIG_QUERY_BEATS 0x007cu
#define EMBER_CONFIG_QUERY_BEATS_WIDTH 32u
#define EMBER_CONFIG_QUERY_BEATS_MASK 0xffffffffu
#define EMBER_CONFIG_QUERY_BEATS_RESET 0x200u

/* config_lookup_beats (ro): lookup_beats of this configuration */
#define EMBER_CONFIG_LOOKUP_BEATS 0x0080u
#define EMBER_CONFIG_LOOKUP_BEATS_WIDTH 32u
#define EMBER_CONFIG_LOOKUP_BEATS_MASK 0xffffffffu
#define EMBER_CONFIG_LOOKUP_BEATS_RESET 0x1000u

/* config_net_payload_beats (ro): net_payload_beats of this configuration */
#define EMBER_CONFIG_NET_PAYLOAD_BEATS 0x0084u
#define EMBER_CONFIG_NET_PAYLOAD_BEATS_WIDTH 32u
#define EMBER_CONFIG_NET_PAYLOAD_BEATS_MASK 0xffffffffu
#define EMBER_CONFIG_NET_PAYLOAD_BEATS_RESET 0x16u

/* config_host_payload_beats (ro): host_payload_beats of this configuration */
#define EMBER_CONFIG_HOST_PAYLOAD_BEATS 0x0088u
#define EMBER_CONFIG_HOST_PAYLOAD_BEATS_WIDTH 32u
#define EMBER_CONFIG_HOST_PAYLOAD_BEATS_MASK 0xffffffffu
#define EMBER_CONFIG_HOST_PAYLOAD_BEATS_RESET 0x40u

/* config_interaction_vectors (ro): interaction_vectors of this configuration */
#define EMBER_CONFIG_INTERACTION_VECTORS 0x008cu
#define EMBER_CONFIG_INTERACTION_VECTORS_WIDTH 32u
#define EMBER_CONFIG_INTERACTION_VECTORS_MASK 0xffffffffu
#define EMBER_CONFIG_INTERACTION_VECTORS_RESET 0x1bu

/* config_dot_units (ro): dot_units of this configuration */
#define EMBER_CONFIG_DOT_UNITS 0x0090u
#define EMBER_CONFIG_DOT_UNITS_WIDTH 32u
#define EMBER_CONFIG_DOT_UNITS_MASK 0xffffffffu
#define EMBER_CONFIG_DOT_UNITS_RESET 0xdu

/* config_unique_keys (ro): unique_keys of this configuration */
#define EMBER_CONFIG_UNIQUE_KEYS 0x0094u
#define EMBER_CONFIG_UNIQUE_KEYS_WIDTH 32u
#define EMBER_CONFIG_UNIQUE_KEYS_MASK 0xffffffffu
#define EMBER_CONFIG_UNIQUE_KEYS_RESET 0x1000u

/* config_completion_slots (ro): completion_slots of this configuration */
#define EMBER_CONFIG_COMPLETION_SLOTS 0x0098u
#define EMBER_CONFIG_COMPLETION_SLOTS_WIDTH 32u
#define EMBER_CONFIG_COMPLETION_SLOTS_MASK 0xffffffffu
#define EMBER_CONFIG_COMPLETION_SLOTS_RESET 0x10u

/* config_link (ro): link of this configuration */
#define EMBER_CONFIG_LINK 0x009cu
#define EMBER_CONFIG_LINK_WIDTH 32u
#define EMBER_CONFIG_LINK_MASK 0xffffffffu
#define EMBER_CONFIG_LINK_RESET 0x0u

/* config_training (ro): training of this configuration */
#define EMBER_CONFIG_TRAINING 0x00a0u
#define EMBER_CONFIG_TRAINING_WIDTH 32u
#define EMBER_CONFIG_TRAINING_MASK 0xffffffffu
#define EMBER_CONFIG_TRAINING_RESET 0x0u

/* config_local_gradient_keys (ro): local_gradient_keys of this configuration */
#define EMBER_CONFIG_LOCAL_GRADIENT_KEYS 0x00a4u
#define EMBER_CONFIG_LOCAL_GRADIENT_KEYS_WIDTH 32u
#define EMBER_CONFIG_LOCAL_GRADIENT_KEYS_MASK 0xffffffffu
#define EMBER_CONFIG_LOCAL_GRADIENT_KEYS_RESET 0x200u

/* config_global_gradient_keys (ro): global_gradient_keys of this configuration */
#define EMBER_CONFIG_GLOBAL_GRADIENT_KEYS 0x00a8u
#define EMBER_CONFIG_GLOBAL_GRADIENT_KEYS_WIDTH 32u
#define EMBER_CONFIG_GLOBAL_GRADIENT_KEYS_MASK 0xffffffffu
#define EMBER_CONFIG_GLOBAL_GRADIENT_KEYS_RESET 0x1000u

/* config_gradient_ways (ro): gradient_ways of this configuration */
#define EMBER_CONFIG_GRADIENT_WAYS 0x00acu
#define EMBER_CONFIG_GRADIENT_WAYS_WIDTH 32u
#define EMBER_CONFIG_GRADIENT_WAYS_MASK 0xffffffffu
#define EMBER_CONFIG_GRADIENT_WAYS_RESET 0x8u

/* config_gradient_beats (ro): gradient_beats of this configuration */
#define EMBER_CONFIG_GRADIENT_BEATS 0x00b0u
#define EMBER_CONFIG_GRADIENT_BEATS_WIDTH 32u
#define EMBER_CONFIG_GRADIENT_BEATS_MASK 0xffffffffu
#define EMBER_CONFIG_GRADIENT_BEATS_RESET 0x200u

/* config_partial_beats (ro): partial_beats of this configuration */
#define EMBER_CONFIG_PARTIAL_BEATS 0x00b4u
#define EMBER_CONFIG_PARTIAL_BEATS_WIDTH 32u
#define EMBER_CONFIG_PARTIAL_BEATS_MASK 0xffffffffu
#define EMBER_CONFIG_PARTIAL_BEATS_RESET 0x1000u

/* config_update_rows (ro): update_rows of this configuration */
#define EMBER_CONFIG_UPDATE_ROWS 0x00b8u
#define EMBER_CONFIG_UPDATE_ROWS_WIDTH 32u
#define EMBER_CONFIG_UPDATE_ROWS_MASK 0xffffffffu
#define EMBER_CONFIG_UPDATE_ROWS_RESET 0x400u

/* config_policy (ro): policy of this configuration: 0 lru */
#define EMBER_CONFIG_POLICY 0x00bcu
#define EMBER_CONFIG_POLICY_WIDTH 32u
#define EMBER_CONFIG_POLICY_MASK 0xffffffffu
#define EMBER_CONFIG_POLICY_RESET 0x0u

/* node (rw, 0 to 15): this node's number */
#define EMBER_NODE 0x0100u
#define EMBER_NODE_WIDTH 8u
#define EMBER_NODE_MASK 0xffu
#define EMBER_NODE_RESET 0x0u
#define EMBER_NODE_LOW 0x0u
#define EMBER_NODE_HIGH 0xfu

/* nodes (rw, 1 to 16): nodes of the cluster */
#define EMBER_NODES 0x0104u
#define EMBER_NODES_WIDTH 8u
#define EMBER_NODES_MASK 0xffu
#define EMBER_NODES_RESET 0x1u
#define EMBER_NODES_LOW 0x1u
#define EMBER_NODES_HIGH 0x10u

/* vector_beats (rw, 1 to 1): beats of a vector */
#define EMBER_VECTOR_BEATS 0x0108u
#define EMBER_VECTOR_BEATS_WIDTH 1u
#define EMBER_VECTOR_BEATS_MASK 0x1u
#define EMBER_VECTOR_BEATS_RESET 0x1u
#define EMBER_VECTOR_BEATS_LOW 0x1u
#define EMBER_VECTOR_BEATS_HIGH 0x1u

/* vector_packing (rw, 0 to 2): log2 of the vectors in a beat of a packet; counts while vector_beats is 1 */
#define EMBER_VECTOR_PACKING 0x010cu
#define EMBER_VECTOR_PACKING_WIDTH 2u
#define EMBER_VECTOR_PACKING_MASK 0x3u
#define EMBER_VECTOR_PACKING_RESET 0x0u
#define EMBER_VECTOR_PACKING_LOW 0x0u
#define EMBER_VECTOR_PACKING_HIGH 0x2u

/* pooling_mean (rw, 0 to 1): bags pool to their mean, not their sum */
#define EMBER_POOLING_MEAN 0x0110u
#define EMBER_POOLING_MEAN_WIDTH 1u
#define EMBER_POOLING_MEAN_MASK 0x1u
#define EMBER_POOLING_MEAN_RESET 0x0u
#define EMBER_POOLING_MEAN_LOW 0x0u
#define EMBER_POOLING_MEAN_HIGH 0x1u

/* interaction_mode (rw, 0 to 2): results are 0 pooled vectors, 1 dots, 2 concatenations; 1 needs dot_units */
#define EMBER_INTERACTION_MODE 0x0114u
#define EMBER_INTERACTION_MODE_WIDTH 2u
#define EMBER_INTERACTION_MODE_MASK 0x3u
#define EMBER_INTERACTION_MODE_RESET 0x0u
#define EMBER_INTERACTION_MODE_LOW 0x0u
#define EMBER_INTERACTION_MODE_HIGH 0x2u

/* interaction_itself (rw, 0 to 1): dots pair a vector with itself too */
#define EMBER_INTERACTION_ITSELF 0x0118u
#define EMBER_INTERACTION_ITSELF_WIDTH 1u
#define EMBER_INTERACTION_ITSELF_MASK 0x1u
#define EMBER_INTERACTION_ITSELF_RESET 0x0u
#define EMBER_INTERACTION_ITSELF_LOW 0x0u
#define EMBER_INTERACTION_ITSELF_HIGH 0x1u

/* unique_delivery (rw, 0 to 1): the host gets each different vector of a share once, if interaction_mode is 0 */
#define EMBER_UNIQUE_DELIVERY 0x011cu
#define EMBER_UNIQUE_DELIVERY_WIDTH 1u
#define EMBER_UNIQUE_DELIVERY_MASK 0x1u
#define EMBER_UNIQUE_DELIVERY_RESET 0x0u
#define EMBER_UNIQUE_DELIVERY_LOW 0x0u
#define EMBER_UNIQUE_DELIVERY_HIGH 0x1u

/* local_cache_enable (rw, 0 to 1): the local cache keeps rows */
#define EMBER_LOCAL_CACHE_ENABLE 0x0120u
#define EMBER_LOCAL_CACHE_ENABLE_WIDTH 1u
#define EMBER_LOCAL_CACHE_ENABLE_MASK 0x1u
#define EMBER_LOCAL_CACHE_ENABLE_RESET 0x1u
#define EMBER_LOCAL_CACHE_ENABLE_LOW 0x0u
#define EMBER_LOCAL_CACHE_ENABLE_HIGH 0x1u

/* local_cache_sets (rw, 1 to 4096): sets of the local cache in use */
#define EMBER_LOCAL_CACHE_SETS 0x0124u
#define EMBER_LOCAL_CACHE_SETS_WIDTH 13u
#define EMBER_LOCAL_CACHE_SETS_MASK 0x1fffu
#define EMBER_LOCAL_CACHE_SETS_RESET 0x1000u
#define EMBER_LOCAL_CACHE_SETS_LOW 0x1u
#define EMBER_LOCAL_CACHE_SETS_HIGH 0x1000u

/* remote_cache_enable (rw, 0 to 1): the remote cache keeps rows */
#define EMBER_REMOTE_CACHE_ENABLE 0x0128u
#define EMBER_REMOTE_CACHE_ENABLE_WIDTH 1u
#define EMBER_REMOTE_CACHE_ENABLE_MASK 0x1u
#define EMBER_REMOTE_CACHE_ENABLE_RESET 0x1u
#define EMBER_REMOTE_CACHE_ENABLE_LOW 0x0u
#define EMBER_REMOTE_CACHE_ENABLE_HIGH 0x1u

/* remote_cache_sets (rw, 1 to 2048): sets of the remote cache in use */
#define EMBER_REMOTE_CACHE_SETS 0x012cu
#define EMBER_REMOTE_CACHE_SETS_WIDTH 12u
#define EMBER_REMOTE_CACHE_SETS_MASK 0xfffu
#define EMBER_REMOTE_CACHE_SETS_RESET 0x800u
#define EMBER_REMOTE_CACHE_SETS_LOW 0x1u
#define EMBER_REMOTE_CACHE_SETS_HIGH 0x800u

/* requester_merge (rw, 0 to 1): identical keys on their way to other nodes travel once */
#define EMBER_REQUESTER_MERGE 0x0130u
#define EMBER_REQUESTER_MERGE_WIDTH 1u
#define EMBER_REQUESTER_MERGE_MASK 0x1u
#define EMBER_REQUESTER_MERGE_RESET 0x1u
#define EMBER_REQUESTER_MERGE_LOW 0x0u
#define EMBER_REQUESTER_MERGE_HIGH 0x1u

/* dedupe_enable (rw, 0 to 1): the dedupe table merges lookups of a key */
#define EMBER_DEDUPE_ENABLE 0x0134u
#define EMBER_DEDUPE_ENABLE_WIDTH 1u
#define EMBER_DEDUPE_ENABLE_MASK 0x1u
#define EMBER_DEDUPE_ENABLE_RESET 0x1u
#define EMBER_DEDUPE_ENABLE_LOW 0x0u
#define EMBER_DEDUPE_ENABLE_HIGH 0x1u

/* request_batch (rw, 1 to 512): lookups of a request list to the host */
#define EMBER_REQUEST_BATCH 0x0138u
#define EMBER_REQUEST_BATCH_WIDTH 16u
#define EMBER_REQUEST_BATCH_MASK 0xffffu
#define EMBER_REQUEST_BATCH_RESET 0x40u
#define EMBER_REQUEST_BATCH_LOW 0x1u
#define EMBER_REQUEST_BATCH_HIGH 0x200u

/* request_timeout (rw, 0 to 65535): cycles after which an open request list to the host leaves */
#define EMBER_REQUEST_TIMEOUT 0x013cu
#define EMBER_REQUEST_TIMEOUT_WIDTH 16u
#define EMBER_REQUEST_TIMEOUT_MASK 0xffffu
#define EMBER_REQUEST_TIMEOUT_RESET 0x40u
#define EMBER_REQUEST_TIMEOUT_LOW 0x0u
#define EMBER_REQUEST_TIMEOUT_HIGH 0xffffu

/* lookup_timeout (rw, 0 to 65535): cycles after which an open lookups packet leaves */
#define EMBER_LOOKUP_TIMEOUT 0x0140u
#define EMBER_LOOKUP_TIMEOUT_WIDTH 16u
#define EMBER_LOOKUP_TIMEOUT_MASK 0xffffu
#define EMBER_LOOKUP_TIMEOUT_RESET 0x40u
#define EMBER_LOOKUP_TIMEOUT_LOW 0x0u
#define EMBER_LOOKUP_TIMEOUT_HIGH 0xffffu

/* vector_timeout (rw, 0 to 65535): cycles after which an open vectors packet leaves */
#define EMBER_VECTOR_TIMEOUT 0x0144u
#define EMBER_VECTOR_TIMEOUT_WIDTH 16u
#define EMBER_VECTOR_TIMEOUT_MASK 0xffffu
#define EMBER_VECTOR_TIMEOUT_RESET 0x40u
#define EMBER_VECTOR_TIMEOUT_LOW 0x0u
#define EMBER_VECTOR_TIMEOUT_HIGH 0xffffu

/* result_timeout (rw, 0 to 65535): cycles after which an open results packet leaves */
#define EMBER_RESULT_TIMEOUT 0x0148u
#define EMBER_RESULT_TIMEOUT_WIDTH 16u
#define EMBER_RESULT_TIMEOUT_MASK 0xffffu
#define EMBER_RESULT_TIMEOUT_RESET 0x40u
#define EMBER_RESULT_TIMEOUT_LOW 0x0u
#define EMBER_RESULT_TIMEOUT_HIGH 0xffffu

/* index_timeout (rw, 0 to 65535): cycles after which an open indices packet leaves */
#define EMBER_INDEX_TIMEOUT 0x014cu
#define EMBER_INDEX_TIMEOUT_WIDTH 16u
#define EMBER_INDEX_TIMEOUT_MASK 0xffffu
#define EMBER_INDEX_TIMEOUT_RESET 0x40u
#define EMBER_INDEX_TIMEOUT_LOW 0x0u
#define EMBER_INDEX_TIMEOUT_HIGH 0xffffu

/* lookup_window (rw, 1 to 4096): lookup beats that may be on their way to one owner */
#define EMBER_LOOKUP_WINDOW 0x0150u
#define EMBER_LOOKUP_WINDOW_WIDTH 16u
#define EMBER_LOOKUP_WINDOW_MASK 0xffffu
#define EMBER_LOOKUP_WINDOW_RESET 0xe0u
#define EMBER_LOOKUP_WINDOW_LOW 0x1u
#define EMBER_LOOKUP_WINDOW_HIGH 0x1000u

/* output_queues (rw, 0 to 1): lookups wait for credit in a queue of their owner, not in one for all; set it before the first lookup, reset to change it */
#define EMBER_OUTPUT_QUEUES 0x0154u
#define EMBER_OUTPUT_QUEUES_WIDTH 1u
#define EMBER_OUTPUT_QUEUES_MASK 0x1u
#define EMBER_OUTPUT_QUEUES_RESET 0x0u
#define EMBER_OUTPUT_QUEUES_LOW 0x0u
#define EMBER_OUTPUT_QUEUES_HIGH 0x1u

/* lookup_share (rw, 1 to 4096): lookup beats that one requester may have waiting here */
#define EMBER_LOOKUP_SHARE 0x0158u
#define EMBER_LOOKUP_SHARE_WIDTH 16u
#define EMBER_LOOKUP_SHARE_MASK 0xffffu
#define EMBER_LOOKUP_SHARE_RESET 0x100u
#define EMBER_LOOKUP_SHARE_LOW 0x1u
#define EMBER_LOOKUP_SHARE_HIGH 0x1000u

/* tap_select (rw, 0 to 2): whose lookups the access tap logs: 1 local, 2 remote cache */
#define EMBER_TAP_SELECT 0x015cu
#define EMBER_TAP_SELECT_WIDTH 2u
#define EMBER_TAP_SELECT_MASK 0x3u
#define EMBER_TAP_SELECT_RESET 0x0u
#define EMBER_TAP_SELECT_LOW 0x0u
#define EMBER_TAP_SELECT_HIGH 0x2u

/* step_floor (rw, 0 to 65535): smallest step still in use */
#define EMBER_STEP_FLOOR 0x0160u
#define EMBER_STEP_FLOOR_WIDTH 16u
#define EMBER_STEP_FLOOR_MASK 0xffffu
#define EMBER_STEP_FLOOR_RESET 0x0u
#define EMBER_STEP_FLOOR_LOW 0x0u
#define EMBER_STEP_FLOOR_HIGH 0xffffu

/* completion_base_low (rw, 0 to 4294967295): address of the ring of completions, a multiple of 64, bits 31 to 0 */
#define EMBER_COMPLETION_BASE_LOW 0x0164u
#define EMBER_COMPLETION_BASE_LOW_WIDTH 32u
#define EMBER_COMPLETION_BASE_LOW_MASK 0xffffffffu
#define EMBER_COMPLETION_BASE_LOW_RESET 0x0u
#define EMBER_COMPLETION_BASE_LOW_LOW 0x0u
#define EMBER_COMPLETION_BASE_LOW_HIGH 0xffffffffu

/* completion_base_high (rw, 0 to 4294967295): the same, bits 63 to 32 */
#define EMBER_COMPLETION_BASE_HIGH 0x0168u
#define EMBER_COMPLETION_BASE_HIGH_WIDTH 32u
#define EMBER_COMPLETION_BASE_HIGH_MASK 0xffffffffu
#define EMBER_COMPLETION_BASE_HIGH_RESET 0x0u
#define EMBER_COMPLETION_BASE_HIGH_LOW 0x0u
#define EMBER_COMPLETION_BASE_HIGH_HIGH 0xffffffffu

/* completion_flush (rw, 0 to 1): a completion waits until what was written before is seen */
#define EMBER_COMPLETION_FLUSH 0x016cu
#define EMBER_COMPLETION_FLUSH_WIDTH 1u
#define EMBER_COMPLETION_FLUSH_MASK 0x1u
#define EMBER_COMPLETION_FLUSH_RESET 0x1u
#define EMBER_COMPLETION_FLUSH_LOW 0x0u
#define EMBER_COMPLETION_FLUSH_HIGH 0x1u

/* step_timeout (rw, 0 to 4294967295): cycles after which an open step is completed, 0 is never */
#define EMBER_STEP_TIMEOUT 0x0170u
#define EMBER_STEP_TIMEOUT_WIDTH 32u
#define EMBER_STEP_TIMEOUT_MASK 0xffffffffu
#define EMBER_STEP_TIMEOUT_RESET 0x0u
#define EMBER_STEP_TIMEOUT_LOW 0x0u
#define EMBER_STEP_TIMEOUT_HIGH 0xffffffffu

/* gpu_rings (rw, 0 to 1): request lists go to a ring in GPU memory, vectors come from one */
#define EMBER_GPU_RINGS 0x0174u
#define EMBER_GPU_RINGS_WIDTH 1u
#define EMBER_GPU_RINGS_MASK 0x1u
#define EMBER_GPU_RINGS_RESET 0x0u
#define EMBER_GPU_RINGS_LOW 0x0u
#define EMBER_GPU_RINGS_HIGH 0x1u

/* list_ring_low (rw, 0 to 4294967295): address of the ring of request lists, bits 31 to 0 */
#define EMBER_LIST_RING_LOW 0x0178u
#define EMBER_LIST_RING_LOW_WIDTH 32u
#define EMBER_LIST_RING_LOW_MASK 0xffffffffu
#define EMBER_LIST_RING_LOW_RESET 0x0u
#define EMBER_LIST_RING_LOW_LOW 0x0u
#define EMBER_LIST_RING_LOW_HIGH 0xffffffffu

/* list_ring_high (rw, 0 to 4294967295): the same, bits 63 to 32 */
#define EMBER_LIST_RING_HIGH 0x017cu
#define EMBER_LIST_RING_HIGH_WIDTH 32u
#define EMBER_LIST_RING_HIGH_MASK 0xffffffffu
#define EMBER_LIST_RING_HIGH_RESET 0x0u
#define EMBER_LIST_RING_HIGH_LOW 0x0u
#define EMBER_LIST_RING_HIGH_HIGH 0xffffffffu

/* list_ring_shift (rw, 0 to 15): log2 of the ring's slots */
#define EMBER_LIST_RING_SHIFT 0x0180u
#define EMBER_LIST_RING_SHIFT_WIDTH 4u
#define EMBER_LIST_RING_SHIFT_MASK 0xfu
#define EMBER_LIST_RING_SHIFT_RESET 0x8u
#define EMBER_LIST_RING_SHIFT_LOW 0x0u
#define EMBER_LIST_RING_SHIFT_HIGH 0xfu

/* list_slot_shift (rw, 11 to 31): log2 of the bytes of a slot */
#define EMBER_LIST_SLOT_SHIFT 0x0184u
#define EMBER_LIST_SLOT_SHIFT_WIDTH 5u
#define EMBER_LIST_SLOT_SHIFT_MASK 0x1fu
#define EMBER_LIST_SLOT_SHIFT_RESET 0xbu
#define EMBER_LIST_SLOT_SHIFT_LOW 0xbu
#define EMBER_LIST_SLOT_SHIFT_HIGH 0x1fu

/* list_index_low (rw, 0 to 4294967295): address of the word with the count of list slots that the NIC is done with, bits 31 to 0; the others as of the ring */
#define EMBER_LIST_INDEX_LOW 0x0188u
#define EMBER_LIST_INDEX_LOW_WIDTH 32u
#define EMBER_LIST_INDEX_LOW_MASK 0xffffffffu
#define EMBER_LIST_INDEX_LOW_RESET 0x0u
#define EMBER_LIST_INDEX_LOW_LOW 0x0u
#define EMBER_LIST_INDEX_LOW_HIGH 0xffffffffu

/* vector_ring_low (rw, 0 to 4294967295): address of the ring of vectors, a slot a list, bits 31 to 0 */
#define EMBER_VECTOR_RING_LOW 0x018cu
#define EMBER_VECTOR_RING_LOW_WIDTH 32u
#define EMBER_VECTOR_RING_LOW_MASK 0xffffffffu
#define EMBER_VECTOR_RING_LOW_RESET 0x0u
#define EMBER_VECTOR_RING_LOW_LOW 0x0u
#define EMBER_VECTOR_RING_LOW_HIGH 0xffffffffu

/* vector_ring_high (rw, 0 to 4294967295): the same, bits 63 to 32 */
#define EMBER_VECTOR_RING_HIGH 0x0190u
#define EMBER_VECTOR_RING_HIGH_WIDTH 32u
#define EMBER_VECTOR_RING_HIGH_MASK 0xffffffffu
#define EMBER_VECTOR_RING_HIGH_RESET 0x0u
#define EMBER_VECTOR_RING_HIGH_LOW 0x0u
#define EMBER_VECTOR_RING_HIGH_HIGH 0xffffffffu

/* vector_ring_shift (rw, 0 to 15): log2 of the ring's slots */
#define EMBER_VECTOR_RING_SHIFT 0x0194u
#define EMBER_VECTOR_RING_SHIFT_WIDTH 4u
#define EMBER_VECTOR_RING_SHIFT_MASK 0xfu
#define EMBER_VECTOR_RING_SHIFT_RESET 0x8u
#define EMBER_VECTOR_RING_SHIFT_LOW 0x0u
#define EMBER_VECTOR_RING_SHIFT_HIGH 0xfu

/* vector_slot_shift (rw, 12 to 31): log2 of the bytes of a slot */
#define EMBER_VECTOR_SLOT_SHIFT 0x0198u
#define EMBER_VECTOR_SLOT_SHIFT_WIDTH 5u
#define EMBER_VECTOR_SLOT_SHIFT_MASK 0x1fu
#define EMBER_VECTOR_SLOT_SHIFT_RESET 0xcu
#define EMBER_VECTOR_SLOT_SHIFT_LOW 0xcu
#define EMBER_VECTOR_SLOT_SHIFT_HIGH 0x1fu

/* vector_index_low (rw, 0 to 4294967295): address of the word with the count of vector slots that the NIC is done with, bits 31 to 0; the others as of the ring */
#define EMBER_VECTOR_INDEX_LOW 0x019cu
#define EMBER_VECTOR_INDEX_LOW_WIDTH 32u
#define EMBER_VECTOR_INDEX_LOW_MASK 0xffffffffu
#define EMBER_VECTOR_INDEX_LOW_RESET 0x0u
#define EMBER_VECTOR_INDEX_LOW_LOW 0x0u
#define EMBER_VECTOR_INDEX_LOW_HIGH 0xffffffffu

/* vector_every (rw, 0 to 255): slots read out after which their count is written */
#define EMBER_VECTOR_EVERY 0x01a0u
#define EMBER_VECTOR_EVERY_WIDTH 8u
#define EMBER_VECTOR_EVERY_MASK 0xffu
#define EMBER_VECTOR_EVERY_RESET 0x1u
#define EMBER_VECTOR_EVERY_LOW 0x0u
#define EMBER_VECTOR_EVERY_HIGH 0xffu

/* row_reads (rw, 0 to 1): rows are read from GPU memory by DMA, if gpu_rings is 0 */
#define EMBER_ROW_READS 0x01a4u
#define EMBER_ROW_READS_WIDTH 1u
#define EMBER_ROW_READS_MASK 0x1u
#define EMBER_ROW_READS_RESET 0x0u
#define EMBER_ROW_READS_LOW 0x0u
#define EMBER_ROW_READS_HIGH 0x1u

/* rows_base_low (rw, 0 to 4294967295): address in GPU memory from which on the bases of tables count, bits 31 to 0 */
#define EMBER_ROWS_BASE_LOW 0x01a8u
#define EMBER_ROWS_BASE_LOW_WIDTH 32u
#define EMBER_ROWS_BASE_LOW_MASK 0xffffffffu
#define EMBER_ROWS_BASE_LOW_RESET 0x0u
#define EMBER_ROWS_BASE_LOW_LOW 0x0u
#define EMBER_ROWS_BASE_LOW_HIGH 0xffffffffu

/* rows_base_high (rw, 0 to 4294967295): the same, bits 63 to 32 */
#define EMBER_ROWS_BASE_HIGH 0x01acu
#define EMBER_ROWS_BASE_HIGH_WIDTH 32u
#define EMBER_ROWS_BASE_HIGH_MASK 0xffffffffu
#define EMBER_ROWS_BASE_HIGH_RESET 0x0u
#define EMBER_ROWS_BASE_HIGH_LOW 0x0u
#define EMBER_ROWS_BASE_HIGH_HIGH 0xffffffffu

/* lists_consumed (rw, 0 to 65535): lists that the kernel has read, modulo 2^16 */
#define EMBER_LISTS_CONSUMED 0x01b0u
#define EMBER_LISTS_CONSUMED_WIDTH 16u
#define EMBER_LISTS_CONSUMED_MASK 0xffffu
#define EMBER_LISTS_CONSUMED_RESET 0x0u
#define EMBER_LISTS_CONSUMED_LOW 0x0u
#define EMBER_LISTS_CONSUMED_HIGH 0xffffu

/* vectors_produced (rw, 0 to 65535): slots of vectors it has filled, modulo 2^16 */
#define EMBER_VECTORS_PRODUCED 0x01b4u
#define EMBER_VECTORS_PRODUCED_WIDTH 16u
#define EMBER_VECTORS_PRODUCED_MASK 0xffffu
#define EMBER_VECTORS_PRODUCED_RESET 0x0u
#define EMBER_VECTORS_PRODUCED_LOW 0x0u
#define EMBER_VECTORS_PRODUCED_HIGH 0xffffu

/* mac_base_low (rw, 0 to 4294967295): MAC address of node 0, bits 31 to 0 */
#define EMBER_MAC_BASE_LOW 0x01b8u
#define EMBER_MAC_BASE_LOW_WIDTH 32u
#define EMBER_MAC_BASE_LOW_MASK 0xffffffffu
#define EMBER_MAC_BASE_LOW_RESET 0x4d420000u
#define EMBER_MAC_BASE_LOW_LOW 0x0u
#define EMBER_MAC_BASE_LOW_HIGH 0xffffffffu

/* mac_base_high (rw, 0 to 65535): MAC address of node 0, bits 47 to 32 */
#define EMBER_MAC_BASE_HIGH 0x01bcu
#define EMBER_MAC_BASE_HIGH_WIDTH 16u
#define EMBER_MAC_BASE_HIGH_MASK 0xffffu
#define EMBER_MAC_BASE_HIGH_RESET 0x245u
#define EMBER_MAC_BASE_HIGH_LOW 0x0u
#define EMBER_MAC_BASE_HIGH_HIGH 0xffffu

/* ip_base (rw, 0 to 4294967295): IPv4 address of node 0 */
#define EMBER_IP_BASE 0x01c0u
#define EMBER_IP_BASE_WIDTH 32u
#define EMBER_IP_BASE_MASK 0xffffffffu
#define EMBER_IP_BASE_RESET 0xa450000u
#define EMBER_IP_BASE_LOW 0x0u
#define EMBER_IP_BASE_HIGH 0xffffffffu

/* udp_port (rw, 0 to 65535): UDP port, source and destination */
#define EMBER_UDP_PORT 0x01c4u
#define EMBER_UDP_PORT_WIDTH 16u
#define EMBER_UDP_PORT_MASK 0xffffu
#define EMBER_UDP_PORT_RESET 0x4853u
#define EMBER_UDP_PORT_LOW 0x0u
#define EMBER_UDP_PORT_HIGH 0xffffu

/* counters_hold (rw, 0 to 1): reads of counters return all counters as of the cycle in which this became 1 */
#define EMBER_COUNTERS_HOLD 0x01c8u
#define EMBER_COUNTERS_HOLD_WIDTH 1u
#define EMBER_COUNTERS_HOLD_MASK 0x1u
#define EMBER_COUNTERS_HOLD_RESET 0x0u
#define EMBER_COUNTERS_HOLD_LOW 0x0u
#define EMBER_COUNTERS_HOLD_HIGH 0x1u

/* flush (rw, 0 to 3): a bit that rises empties, in mid-traffic too, 0 the caches of this node's rows, 1 that of other nodes' rows: rows changed in memory are fetched again */
#define EMBER_FLUSH 0x01ccu
#define EMBER_FLUSH_WIDTH 2u
#define EMBER_FLUSH_MASK 0x3u
#define EMBER_FLUSH_RESET 0x0u
#define EMBER_FLUSH_LOW 0x0u
#define EMBER_FLUSH_HIGH 0x3u

/* table_index (rw, 0 to 63): table that table_word0 to 4 write to */
#define EMBER_TABLE_INDEX 0x0280u
#define EMBER_TABLE_INDEX_WIDTH 12u
#define EMBER_TABLE_INDEX_MASK 0xfffu
#define EMBER_TABLE_INDEX_RESET 0x0u
#define EMBER_TABLE_INDEX_LOW 0x0u
#define EMBER_TABLE_INDEX_HIGH 0x3fu

/* table_word0 (wo): word 0 of the descriptor of table_index; whole words; takes effect at once */
#define EMBER_TABLE_WORD0 0x0284u
#define EMBER_TABLE_WORD0_WIDTH 32u
#define EMBER_TABLE_WORD0_MASK 0xffffffffu
#define EMBER_TABLE_WORD0_RESET 0x0u

/* table_word1 (wo): word 1 of the descriptor of table_index; whole words; takes effect at once */
#define EMBER_TABLE_WORD1 0x0288u
#define EMBER_TABLE_WORD1_WIDTH 32u
#define EMBER_TABLE_WORD1_MASK 0xffffffffu
#define EMBER_TABLE_WORD1_RESET 0x0u

/* table_word2 (wo): word 2 of the descriptor of table_index; whole words; takes effect at once */
#define EMBER_TABLE_WORD2 0x028cu
#define EMBER_TABLE_WORD2_WIDTH 32u
#define EMBER_TABLE_WORD2_MASK 0xffffffffu
#define EMBER_TABLE_WORD2_RESET 0x0u

/* table_word3 (wo): word 3 of the descriptor of table_index; whole words; takes effect at once */
#define EMBER_TABLE_WORD3 0x0290u
#define EMBER_TABLE_WORD3_WIDTH 32u
#define EMBER_TABLE_WORD3_MASK 0xffffffffu
#define EMBER_TABLE_WORD3_RESET 0x0u

/* table_word4 (wo): word 4 of the descriptor of table_index; whole words; takes effect at once */
#define EMBER_TABLE_WORD4 0x0294u
#define EMBER_TABLE_WORD4_WIDTH 32u
#define EMBER_TABLE_WORD4_MASK 0xffffffffu
#define EMBER_TABLE_WORD4_RESET 0x0u

/* channel_valid0 (ro): valid, now, of the streams host_rx, net_rx, host_receiver.o, gpu_rings.o, host_receiver.refused, net_receiver.o, host_parser.records, host_parser.vectors, host_parser.dense, host_parser.opens, host_parser.flushed, query_checker.o, delivery.o, delivery.shares, delivery.indices, query_checker.errors, dispatcher.reserve, dispatcher.local, dispatcher.remote, dispatcher.dense, remote_cache.misses, remote_cache.vectors, net_parser.records, net_parser.vectors, lookup_receiver.o, lookup_check.o, request_fifo.o, request_arbiter.o, dedupe.misses, dedupe.vectors, local_cache.misses, row_reads.o, from bit 0 on */
#define EMBER_CHANNEL_VALID0 0x0300u
#define EMBER_CHANNEL_VALID0_WIDTH 32u
#define EMBER_CHANNEL_VALID0_MASK 0xffffffffu

/* channel_ready0 (ro): ready, now, of the streams host_rx, net_rx, host_receiver.o, gpu_rings.o, host_receiver.refused, net_receiver.o, host_parser.records, host_parser.vectors, host_parser.dense, host_parser.opens, host_parser.flushed, query_checker.o, delivery.o, delivery.shares, delivery.indices, query_checker.errors, dispatcher.reserve, dispatcher.local, dispatcher.remote, dispatcher.dense, remote_cache.misses, remote_cache.vectors, net_parser.records, net_parser.vectors, lookup_receiver.o, lookup_check.o, request_fifo.o, request_arbiter.o, dedupe.misses, dedupe.vectors, local_cache.misses, row_reads.o, from bit 0 on */
#define EMBER_CHANNEL_READY0 0x0304u
#define EMBER_CHANNEL_READY0_WIDTH 32u
#define EMBER_CHANNEL_READY0_MASK 0xffffffffu

/* channel_valid1 (ro): valid, now, of the streams local_cache.vectors, vector_router.local, vector_router.remote, hold_buffer.o, pooler.o, pooled_router.packets, pooled_router.vectors, dense_ring.o, concatenator.o, interaction.o, ring_messages.steps, completion_writer.refused, lookup_packager.headers, lookup_packager.payload, vector_packager.headers, vector_packager.payload, request_packager.headers, gpu_rings.list_headers, row_reads.header_out, request_packager.payload, result_packager.headers, result_packager.payload, dense_ring.headers, dense_ring.payload, result_frames.headers, result_frames.payload, host_reporter.headers, host_reporter.payload, index_packager.headers, index_packager.payload, completion_writer.headers, completion_writer.payload, from bit 0 on */
#define EMBER_CHANNEL_VALID1 0x0308u
#define EMBER_CHANNEL_VALID1_WIDTH 32u
#define EMBER_CHANNEL_VALID1_MASK 0xffffffffu

/* channel_ready1 (ro): ready, now, of the streams local_cache.vectors, vector_router.local, vector_router.remote, hold_buffer.o, pooler.o, pooled_router.packets, pooled_router.vectors, dense_ring.o, concatenator.o, interaction.o, ring_messages.steps, completion_writer.refused, lookup_packager.headers, lookup_packager.payload, vector_packager.headers, vector_packager.payload, request_packager.headers, gpu_rings.list_headers, row_reads.header_out, request_packager.payload, result_packager.headers, result_packager.payload, dense_ring.headers, dense_ring.payload, result_frames.headers, result_frames.payload, host_reporter.headers, host_reporter.payload, index_packager.headers, index_packager.payload, completion_writer.headers, completion_writer.payload, from bit 0 on */
#define EMBER_CHANNEL_READY1 0x030cu
#define EMBER_CHANNEL_READY1_WIDTH 32u
#define EMBER_CHANNEL_READY1_MASK 0xffffffffu

/* channel_valid2 (ro): valid, now, of the streams gpu_rings.headers, gpu_rings.payload, net_mux.header_out, net_mux.payload_out, host_mux.header_out, host_mux.payload_out, net_tx, host_tx, from bit 0 on */
#define EMBER_CHANNEL_VALID2 0x0310u
#define EMBER_CHANNEL_VALID2_WIDTH 8u
#define EMBER_CHANNEL_VALID2_MASK 0xffu

/* channel_ready2 (ro): ready, now, of the streams gpu_rings.headers, gpu_rings.payload, net_mux.header_out, net_mux.payload_out, host_mux.header_out, host_mux.payload_out, net_tx, host_tx, from bit 0 on */
#define EMBER_CHANNEL_READY2 0x0314u
#define EMBER_CHANNEL_READY2_WIDTH 8u
#define EMBER_CHANNEL_READY2_MASK 0xffu

/* lookup_next_node (ro): node that the next lookups packet is for, or whose credit a queue waited for last */
#define EMBER_LOOKUP_NEXT_NODE 0x0380u
#define EMBER_LOOKUP_NEXT_NODE_WIDTH 8u
#define EMBER_LOOKUP_NEXT_NODE_MASK 0xffu

/* flushing (ro): caches that are being emptied now, bits as in flush */
#define EMBER_FLUSHING 0x03c0u
#define EMBER_FLUSHING_WIDTH 2u
#define EMBER_FLUSHING_MASK 0x3u
#define EMBER_FLUSHING_RESET 0x0u

/* host_receiver.packets (ro): cumulative, modulo 2^32 */
#define EMBER_HOST_RECEIVER_PACKETS 0x1000u

/* host_receiver.beats (ro): cumulative, modulo 2^64: bits 31 to 0 */
#define EMBER_HOST_RECEIVER_BEATS 0x1004u

/* host_receiver.beats_high (ro): the same, bits 63 to 32 */
#define EMBER_HOST_RECEIVER_BEATS_HIGH 0x1008u

/* host_receiver.errors_mac (ro): cumulative, modulo 2^32 */
#define EMBER_HOST_RECEIVER_ERRORS_MAC 0x100cu

/* host_receiver.foreign (ro): cumulative, modulo 2^32 */
#define EMBER_HOST_RECEIVER_FOREIGN 0x1010u

/* host_receiver.bad_length (ro): cumulative, modulo 2^32 */
#define EMBER_HOST_RECEIVER_BAD_LENGTH 0x1014u

/* host_receiver.bad_crc (ro): cumulative, modulo 2^32 */
#define EMBER_HOST_RECEIVER_BAD_CRC 0x1018u

/* host_receiver.bad_opcode (ro): cumulative, modulo 2^32 */
#define EMBER_HOST_RECEIVER_BAD_OPCODE 0x101cu

/* host_receiver.bad_node (ro): cumulative, modulo 2^32 */
#define EMBER_HOST_RECEIVER_BAD_NODE 0x1020u

/* host_receiver.overruns (ro): cumulative, modulo 2^32 */
#define EMBER_HOST_RECEIVER_OVERRUNS 0x1024u

/* net_receiver.packets (ro): cumulative, modulo 2^32 */
#define EMBER_NET_RECEIVER_PACKETS 0x1028u

/* net_receiver.beats (ro): cumulative, modulo 2^64: bits 31 to 0 */
#define EMBER_NET_RECEIVER_BEATS 0x102cu

/* net_receiver.beats_high (ro): the same, bits 63 to 32 */
#define EMBER_NET_RECEIVER_BEATS_HIGH 0x1030u

/* net_receiver.errors_mac (ro): cumulative, modulo 2^32 */
#define EMBER_NET_RECEIVER_ERRORS_MAC 0x1034u

/* net_receiver.foreign (ro): cumulative, modulo 2^32 */
#define EMBER_NET_RECEIVER_FOREIGN 0x1038u

/* net_receiver.bad_length (ro): cumulative, modulo 2^32 */
#define EMBER_NET_RECEIVER_BAD_LENGTH 0x103cu

/* net_receiver.bad_crc (ro): cumulative, modulo 2^32 */
#define EMBER_NET_RECEIVER_BAD_CRC 0x1040u

/* net_receiver.bad_opcode (ro): cumulative, modulo 2^32 */
#define EMBER_NET_RECEIVER_BAD_OPCODE 0x1044u

/* net_receiver.bad_node (ro): cumulative, modulo 2^32 */
#define EMBER_NET_RECEIVER_BAD_NODE 0x1048u

/* net_receiver.overruns (ro): cumulative, modulo 2^32 */
#define EMBER_NET_RECEIVER_OVERRUNS 0x104cu

/* query_checker.samples (ro): cumulative, modulo 2^32 */
#define EMBER_QUERY_CHECKER_SAMPLES 0x1050u

/* query_checker.keys (ro): cumulative, modulo 2^32 */
#define EMBER_QUERY_CHECKER_KEYS 0x1054u

/* query_checker.empty_bags (ro): cumulative, modulo 2^32 */
#define EMBER_QUERY_CHECKER_EMPTY_BAGS 0x1058u

/* query_checker.rejected (ro): cumulative, modulo 2^32 */
#define EMBER_QUERY_CHECKER_REJECTED 0x105cu

/* query_checker.strays (ro): cumulative, modulo 2^32 */
#define EMBER_QUERY_CHECKER_STRAYS 0x1060u

/* query_checker.over_credit (ro): cumulative, modulo 2^32 */
#define EMBER_QUERY_CHECKER_OVER_CREDIT 0x1064u

/* delivery.slots (ro): cumulative, modulo 2^32 */
#define EMBER_DELIVERY_SLOTS 0x1068u

/* delivery.unique (ro): cumulative, modulo 2^32 */
#define EMBER_DELIVERY_UNIQUE 0x106cu

/* delivery.repeats (ro): cumulative, modulo 2^32 */
#define EMBER_DELIVERY_REPEATS 0x1070u

/* delivery.retired_early (ro): cumulative, modulo 2^32 */
#define EMBER_DELIVERY_RETIRED_EARLY 0x1074u

/* delivery.no_index (ro): cumulative, modulo 2^32 */
#define EMBER_DELIVERY_NO_INDEX 0x1078u

/* delivery.steps (ro): cumulative, modulo 2^32 */
#define EMBER_DELIVERY_STEPS 0x107cu

/* delivery.sweeps (ro): cumulative, modulo 2^32 */
#define EMBER_DELIVERY_SWEEPS 0x1080u

/* delivery.stall_sweep (ro): cumulative, modulo 2^32 */
#define EMBER_DELIVERY_STALL_SWEEP 0x1084u

/* delivery.stall_output (ro): cumulative, modulo 2^32 */
#define EMBER_DELIVERY_STALL_OUTPUT 0x1088u

/* delivery.cut (ro): cumulative, modulo 2^32 */
#define EMBER_DELIVERY_CUT 0x108cu

/* dispatcher.local (ro): cumulative, modulo 2^32 */
#define EMBER_DISPATCHER_LOCAL 0x1090u

/* dispatcher.remote (ro): cumulative, modulo 2^32 */
#define EMBER_DISPATCHER_REMOTE 0x1094u

/* dispatcher.stall_hold (ro): cumulative, modulo 2^32 */
#define EMBER_DISPATCHER_STALL_HOLD 0x1098u

/* dispatcher.stall_local (ro): cumulative, modulo 2^32 */
#define EMBER_DISPATCHER_STALL_LOCAL 0x109cu

/* dispatcher.stall_remote (ro): cumulative, modulo 2^32 */
#define EMBER_DISPATCHER_STALL_REMOTE 0x10a0u

/* dispatcher.stall_dense (ro): cumulative, modulo 2^32 */
#define EMBER_DISPATCHER_STALL_DENSE 0x10a4u

/* dispatcher.stall_step (ro): cumulative, modulo 2^32 */
#define EMBER_DISPATCHER_STALL_STEP 0x10a8u

/* remote_cache.accesses (ro): cumulative, modulo 2^32 */
#define EMBER_REMOTE_CACHE_ACCESSES 0x10acu

/* remote_cache.hits (ro): cumulative, modulo 2^32 */
#define EMBER_REMOTE_CACHE_HITS 0x10b0u

/* remote_cache.hits_pending (ro): cumulative, modulo 2^32 */
#define EMBER_REMOTE_CACHE_HITS_PENDING 0x10b4u

/* remote_cache.misses (ro): cumulative, modulo 2^32 */
#define EMBER_REMOTE_CACHE_MISSES 0x10b8u

/* remote_cache.conflict_misses (ro): cumulative, modulo 2^32 */
#define EMBER_REMOTE_CACHE_CONFLICT_MISSES 0x10bcu

/* remote_cache.unmerged (ro): cumulative, modulo 2^32 */
#define EMBER_REMOTE_CACHE_UNMERGED 0x10c0u

/* remote_cache.evictions (ro): cumulative, modulo 2^32 */
#define EMBER_REMOTE_CACHE_EVICTIONS 0x10c4u

/* remote_cache.bad_fills (ro): cumulative, modulo 2^32 */
#define EMBER_REMOTE_CACHE_BAD_FILLS 0x10c8u

/* remote_cache.beats_in (ro): cumulative, modulo 2^32 */
#define EMBER_REMOTE_CACHE_BEATS_IN 0x10ccu

/* remote_cache.beats_out (ro): cumulative, modulo 2^32 */
#define EMBER_REMOTE_CACHE_BEATS_OUT 0x10d0u

/* remote_cache.stall_in_flight (ro): cumulative, modulo 2^32 */
#define EMBER_REMOTE_CACHE_STALL_IN_FLIGHT 0x10d4u

/* remote_cache.stall_waiters (ro): cumulative, modulo 2^32 */
#define EMBER_REMOTE_CACHE_STALL_WAITERS 0x10d8u

/* remote_cache.stall_output (ro): cumulative, modulo 2^32 */
#define EMBER_REMOTE_CACHE_STALL_OUTPUT 0x10dcu

/* lookup_packager.records (ro): cumulative, modulo 2^32 */
#define EMBER_LOOKUP_PACKAGER_RECORDS 0x10e0u

/* lookup_packager.packets (ro): cumulative, modulo 2^32 */
#define EMBER_LOOKUP_PACKAGER_PACKETS 0x10e4u

/* lookup_packager.stall_credit (ro): cumulative, modulo 2^32 */
#define EMBER_LOOKUP_PACKAGER_STALL_CREDIT 0x10e8u

/* lookup_packager.stall_buffers (ro): cumulative, modulo 2^32 */
#define EMBER_LOOKUP_PACKAGER_STALL_BUFFERS 0x10ecu

/* lookup_packager.full (ro): cumulative, modulo 2^32 */
#define EMBER_LOOKUP_PACKAGER_FULL 0x10f0u

/* lookup_packager.timeouts (ro): cumulative, modulo 2^32 */
#define EMBER_LOOKUP_PACKAGER_TIMEOUTS 0x10f4u

/* lookup_packager.step_changes (ro): cumulative, modulo 2^32 */
#define EMBER_LOOKUP_PACKAGER_STEP_CHANGES 0x10f8u

/* lookup_receiver.beats (ro): cumulative, modulo 2^32 */
#define EMBER_LOOKUP_RECEIVER_BEATS 0x10fcu

/* lookup_receiver.records (ro): cumulative, modulo 2^32 */
#define EMBER_LOOKUP_RECEIVER_RECORDS 0x1100u

/* lookup_receiver.over_credit (ro): cumulative, modulo 2^32 */
#define EMBER_LOOKUP_RECEIVER_OVER_CREDIT 0x1104u

/* lookup_check.requests (ro): cumulative, modulo 2^32 */
#define EMBER_LOOKUP_CHECK_REQUESTS 0x1108u

/* lookup_check.bad_table (ro): cumulative, modulo 2^32 */
#define EMBER_LOOKUP_CHECK_BAD_TABLE 0x110cu

/* lookup_check.bad_row (ro): cumulative, modulo 2^32 */
#define EMBER_LOOKUP_CHECK_BAD_ROW 0x1110u

/* lookup_check.bad_owner (ro): cumulative, modulo 2^32 */
#define EMBER_LOOKUP_CHECK_BAD_OWNER 0x1114u

/* dedupe.requests (ro): cumulative, modulo 2^32 */
#define EMBER_DEDUPE_REQUESTS 0x1118u

/* dedupe.unique (ro): cumulative, modulo 2^32 */
#define EMBER_DEDUPE_UNIQUE 0x111cu

/* dedupe.merged (ro): cumulative, modulo 2^32 */
#define EMBER_DEDUPE_MERGED 0x1120u

/* dedupe.conflict_misses (ro): cumulative, modulo 2^32 */
#define EMBER_DEDUPE_CONFLICT_MISSES 0x1124u

/* dedupe.bad_fills (ro): cumulative, modulo 2^32 */
#define EMBER_DEDUPE_BAD_FILLS 0x1128u

/* dedupe.beats_in (ro): cumulative, modulo 2^32 */
#define EMBER_DEDUPE_BEATS_IN 0x112cu

/* dedupe.beats_out (ro): cumulative, modulo 2^32 */
#define EMBER_DEDUPE_BEATS_OUT 0x1130u

/* dedupe.stall_in_flight (ro): cumulative, modulo 2^32 */
#define EMBER_DEDUPE_STALL_IN_FLIGHT 0x1134u

/* dedupe.stall_waiters (ro): cumulative, modulo 2^32 */
#define EMBER_DEDUPE_STALL_WAITERS 0x1138u

/* dedupe.stall_output (ro): cumulative, modulo 2^32 */
#define EMBER_DEDUPE_STALL_OUTPUT 0x113cu

/* dedupe.retired_early (ro): cumulative, modulo 2^32 */
#define EMBER_DEDUPE_RETIRED_EARLY 0x1140u

/* local_cache.accesses (ro): cumulative, modulo 2^32 */
#define EMBER_LOCAL_CACHE_ACCESSES 0x1144u

/* local_cache.hits (ro): cumulative, modulo 2^32 */
#define EMBER_LOCAL_CACHE_HITS 0x1148u

/* local_cache.hits_pending (ro): cumulative, modulo 2^32 */
#define EMBER_LOCAL_CACHE_HITS_PENDING 0x114cu

/* local_cache.misses (ro): cumulative, modulo 2^32 */
#define EMBER_LOCAL_CACHE_MISSES 0x1150u

/* local_cache.conflict_misses (ro): cumulative, modulo 2^32 */
#define EMBER_LOCAL_CACHE_CONFLICT_MISSES 0x1154u

/* local_cache.evictions (ro): cumulative, modulo 2^32 */
#define EMBER_LOCAL_CACHE_EVICTIONS 0x1158u

/* local_cache.bad_fills (ro): cumulative, modulo 2^32 */
#define EMBER_LOCAL_CACHE_BAD_FILLS 0x115cu

/* local_cache.beats_in (ro): cumulative, modulo 2^32 */
#define EMBER_LOCAL_CACHE_BEATS_IN 0x1160u

/* local_cache.beats_out (ro): cumulative, modulo 2^32 */
#define EMBER_LOCAL_CACHE_BEATS_OUT 0x1164u

/* local_cache.stall_in_flight (ro): cumulative, modulo 2^32 */
#define EMBER_LOCAL_CACHE_STALL_IN_FLIGHT 0x1168u

/* local_cache.stall_waiters (ro): cumulative, modulo 2^32 */
#define EMBER_LOCAL_CACHE_STALL_WAITERS 0x116cu

/* local_cache.stall_output (ro): cumulative, modulo 2^32 */
#define EMBER_LOCAL_CACHE_STALL_OUTPUT 0x1170u

/* access_tap.events (ro): cumulative, modulo 2^32 */
#define EMBER_ACCESS_TAP_EVENTS 0x1174u

/* access_tap.lost (ro): cumulative, modulo 2^32 */
#define EMBER_ACCESS_TAP_LOST 0x1178u

/* request_packager.records (ro): cumulative, modulo 2^32 */
#define EMBER_REQUEST_PACKAGER_RECORDS 0x117cu

/* request_packager.packets (ro): cumulative, modulo 2^32 */
#define EMBER_REQUEST_PACKAGER_PACKETS 0x1180u

/* request_packager.stall_credit (ro): cumulative, modulo 2^32 */
#define EMBER_REQUEST_PACKAGER_STALL_CREDIT 0x1184u

/* request_packager.stall_buffers (ro): cumulative, modulo 2^32 */
#define EMBER_REQUEST_PACKAGER_STALL_BUFFERS 0x1188u

/* request_packager.full (ro): cumulative, modulo 2^32 */
#define EMBER_REQUEST_PACKAGER_FULL 0x118cu

/* request_packager.timeouts (ro): cumulative, modulo 2^32 */
#define EMBER_REQUEST_PACKAGER_TIMEOUTS 0x1190u

/* request_packager.step_changes (ro): cumulative, modulo 2^32 */
#define EMBER_REQUEST_PACKAGER_STEP_CHANGES 0x1194u

/* vector_packager.vectors (ro): cumulative, modulo 2^32 */
#define EMBER_VECTOR_PACKAGER_VECTORS 0x1198u

/* vector_packager.beats (ro): cumulative, modulo 2^32 */
#define EMBER_VECTOR_PACKAGER_BEATS 0x119cu

/* vector_packager.packets (ro): cumulative, modulo 2^32 */
#define EMBER_VECTOR_PACKAGER_PACKETS 0x11a0u

/* vector_packager.stall_buffers (ro): cumulative, modulo 2^32 */
#define EMBER_VECTOR_PACKAGER_STALL_BUFFERS 0x11a4u

/* vector_packager.full (ro): cumulative, modulo 2^32 */
#define EMBER_VECTOR_PACKAGER_FULL 0x11a8u

/* vector_packager.timeouts (ro): cumulative, modulo 2^32 */
#define EMBER_VECTOR_PACKAGER_TIMEOUTS 0x11acu

/* hold_buffer.reserved (ro): cumulative, modulo 2^32 */
#define EMBER_HOLD_BUFFER_RESERVED 0x11b0u

/* hold_buffer.vectors_in (ro): cumulative, modulo 2^32 */
#define EMBER_HOLD_BUFFER_VECTORS_IN 0x11b4u

/* hold_buffer.beats_in (ro): cumulative, modulo 2^32 */
#define EMBER_HOLD_BUFFER_BEATS_IN 0x11b8u

/* hold_buffer.beats_out (ro): cumulative, modulo 2^32 */
#define EMBER_HOLD_BUFFER_BEATS_OUT 0x11bcu

/* hold_buffer.bad_landings (ro): cumulative, modulo 2^32 */
#define EMBER_HOLD_BUFFER_BAD_LANDINGS 0x11c0u

/* hold_buffer.stall_full (ro): cumulative, modulo 2^32 */
#define EMBER_HOLD_BUFFER_STALL_FULL 0x11c4u

/* hold_buffer.stall_waiting (ro): cumulative, modulo 2^32 */
#define EMBER_HOLD_BUFFER_STALL_WAITING 0x11c8u

/* pooler.beats_in (ro): cumulative, modulo 2^32 */
#define EMBER_POOLER_BEATS_IN 0x11ccu

/* pooler.beats_out (ro): cumulative, modulo 2^32 */
#define EMBER_POOLER_BEATS_OUT 0x11d0u

/* pooler.adds (ro): cumulative, modulo 2^32 */
#define EMBER_POOLER_ADDS 0x11d4u

/* pooler.stall_adder (ro): cumulative, modulo 2^32 */
#define EMBER_POOLER_STALL_ADDER 0x11d8u

/* result_packager.samples (ro): cumulative, modulo 2^32 */
#define EMBER_RESULT_PACKAGER_SAMPLES 0x11dcu

/* result_packager.packets (ro): cumulative, modulo 2^32 */
#define EMBER_RESULT_PACKAGER_PACKETS 0x11e0u

/* result_packager.vectors (ro): cumulative, modulo 2^32 */
#define EMBER_RESULT_PACKAGER_VECTORS 0x11e4u

/* dense_ring.reserved (ro): cumulative, modulo 2^32 */
#define EMBER_DENSE_RING_RESERVED 0x11e8u

/* dense_ring.vectors_in (ro): cumulative, modulo 2^32 */
#define EMBER_DENSE_RING_VECTORS_IN 0x11ecu

/* dense_ring.beats_in (ro): cumulative, modulo 2^32 */
#define EMBER_DENSE_RING_BEATS_IN 0x11f0u

/* dense_ring.beats_out (ro): cumulative, modulo 2^32 */
#define EMBER_DENSE_RING_BEATS_OUT 0x11f4u

/* dense_ring.bad_landings (ro): cumulative, modulo 2^32 */
#define EMBER_DENSE_RING_BAD_LANDINGS 0x11f8u

/* dense_ring.stall_full (ro): cumulative, modulo 2^32 */
#define EMBER_DENSE_RING_STALL_FULL 0x11fcu

/* dense_ring.stall_waiting (ro): cumulative, modulo 2^32 */
#define EMBER_DENSE_RING_STALL_WAITING 0x1200u

/* dense_ring.packets (ro): cumulative, modulo 2^32 */
#define EMBER_DENSE_RING_PACKETS 0x1204u

/* dense_ring.stall_buffers (ro): cumulative, modulo 2^32 */
#define EMBER_DENSE_RING_STALL_BUFFERS 0x1208u

/* concatenator.samples (ro): cumulative, modulo 2^32 */
#define EMBER_CONCATENATOR_SAMPLES 0x120cu

/* concatenator.beats_out (ro): cumulative, modulo 2^32 */
#define EMBER_CONCATENATOR_BEATS_OUT 0x1210u

/* concatenator.stall_dense (ro): cumulative, modulo 2^32 */
#define EMBER_CONCATENATOR_STALL_DENSE 0x1214u

/* interaction.samples (ro): cumulative, modulo 2^32 */
#define EMBER_INTERACTION_SAMPLES 0x1218u

/* interaction.beats_in (ro): cumulative, modulo 2^32 */
#define EMBER_INTERACTION_BEATS_IN 0x121cu

/* interaction.beats_out (ro): cumulative, modulo 2^32 */
#define EMBER_INTERACTION_BEATS_OUT 0x1220u

/* interaction.dropped (ro): cumulative, modulo 2^32 */
#define EMBER_INTERACTION_DROPPED 0x1224u

/* interaction.stall_input (ro): cumulative, modulo 2^32 */
#define EMBER_INTERACTION_STALL_INPUT 0x1228u

/* interaction.stall_output (ro): cumulative, modulo 2^32 */
#define EMBER_INTERACTION_STALL_OUTPUT 0x122cu

/* result_frames.results (ro): cumulative, modulo 2^32 */
#define EMBER_RESULT_FRAMES_RESULTS 0x1230u

/* result_frames.packets (ro): cumulative, modulo 2^32 */
#define EMBER_RESULT_FRAMES_PACKETS 0x1234u

/* result_frames.parts (ro): cumulative, modulo 2^32 */
#define EMBER_RESULT_FRAMES_PARTS 0x1238u

/* result_frames.full (ro): cumulative, modulo 2^32 */
#define EMBER_RESULT_FRAMES_FULL 0x123cu

/* result_frames.timeouts (ro): cumulative, modulo 2^32 */
#define EMBER_RESULT_FRAMES_TIMEOUTS 0x1240u

/* result_frames.changes (ro): cumulative, modulo 2^32 */
#define EMBER_RESULT_FRAMES_CHANGES 0x1244u

/* index_packager.indices (ro): cumulative, modulo 2^32 */
#define EMBER_INDEX_PACKAGER_INDICES 0x1248u

/* index_packager.packets (ro): cumulative, modulo 2^32 */
#define EMBER_INDEX_PACKAGER_PACKETS 0x124cu

/* index_packager.full (ro): cumulative, modulo 2^32 */
#define EMBER_INDEX_PACKAGER_FULL 0x1250u

/* index_packager.timeouts (ro): cumulative, modulo 2^32 */
#define EMBER_INDEX_PACKAGER_TIMEOUTS 0x1254u

/* index_packager.step_ends (ro): cumulative, modulo 2^32 */
#define EMBER_INDEX_PACKAGER_STEP_ENDS 0x1258u

/* index_packager.changes (ro): cumulative, modulo 2^32 */
#define EMBER_INDEX_PACKAGER_CHANGES 0x125cu

/* row_reads.reads (ro): cumulative, modulo 2^32 */
#define EMBER_ROW_READS_READS 0x1260u

/* row_reads.beyond (ro): cumulative, modulo 2^32 */
#define EMBER_ROW_READS_BEYOND 0x1264u

/* gpu_rings.lists (ro): cumulative, modulo 2^32 */
#define EMBER_GPU_RINGS_LISTS 0x1268u

/* gpu_rings.lists_told (ro): cumulative, modulo 2^32 */
#define EMBER_GPU_RINGS_LISTS_TOLD 0x126cu

/* gpu_rings.bad_consumed (ro): cumulative, modulo 2^32 */
#define EMBER_GPU_RINGS_BAD_CONSUMED 0x1270u

/* gpu_rings.stall_full (ro): cumulative, modulo 2^32 */
#define EMBER_GPU_RINGS_STALL_FULL 0x1274u

/* gpu_rings.reads (ro): cumulative, modulo 2^32 */
#define EMBER_GPU_RINGS_READS 0x1278u

/* gpu_rings.repeats (ro): cumulative, modulo 2^32 */
#define EMBER_GPU_RINGS_REPEATS 0x127cu

/* gpu_rings.slots (ro): cumulative, modulo 2^32 */
#define EMBER_GPU_RINGS_SLOTS 0x1280u

/* gpu_rings.slots_told (ro): cumulative, modulo 2^32 */
#define EMBER_GPU_RINGS_SLOTS_TOLD 0x1284u

/* gpu_rings.bad_index (ro): cumulative, modulo 2^32 */
#define EMBER_GPU_RINGS_BAD_INDEX 0x1288u

/* gpu_rings.bad_data (ro): cumulative, modulo 2^32 */
#define EMBER_GPU_RINGS_BAD_DATA 0x128cu

/* gpu_rings.short_data (ro): cumulative, modulo 2^32 */
#define EMBER_GPU_RINGS_SHORT_DATA 0x1290u

/* completion_writer.opened (ro): cumulative, modulo 2^32 */
#define EMBER_COMPLETION_WRITER_OPENED 0x1294u

/* completion_writer.refused (ro): cumulative, modulo 2^32 */
#define EMBER_COMPLETION_WRITER_REFUSED 0x1298u

/* completion_writer.refusals_lost (ro): cumulative, modulo 2^32 */
#define EMBER_COMPLETION_WRITER_REFUSALS_LOST 0x129cu

/* completion_writer.completed (ro): cumulative, modulo 2^32 */
#define EMBER_COMPLETION_WRITER_COMPLETED 0x12a0u

/* completion_writer.flushes (ro): cumulative, modulo 2^32 */
#define EMBER_COMPLETION_WRITER_FLUSHES 0x12a4u

/* completion_writer.bad_flushed (ro): cumulative, modulo 2^32 */
#define EMBER_COMPLETION_WRITER_BAD_FLUSHED 0x12a8u

/* completion_writer.bad_freed (ro): cumulative, modulo 2^32 */
#define EMBER_COMPLETION_WRITER_BAD_FREED 0x12acu

/* completion_writer.finished (ro): cumulative, modulo 2^32 */
#define EMBER_COMPLETION_WRITER_FINISHED 0x12b0u

/* completion_writer.timeouts (ro): cumulative, modulo 2^32 */
#define EMBER_COMPLETION_WRITER_TIMEOUTS 0x12b4u

/* completion_writer.errors (ro): cumulative, modulo 2^32 */
#define EMBER_COMPLETION_WRITER_ERRORS 0x12b8u

/* completion_writer.stray_answers (ro): cumulative, modulo 2^32 */
#define EMBER_COMPLETION_WRITER_STRAY_ANSWERS 0x12bcu

/* completion_writer.excess_answers (ro): cumulative, modulo 2^32 */
#define EMBER_COMPLETION_WRITER_EXCESS_ANSWERS 0x12c0u

/* completion_writer.stray_errors (ro): cumulative, modulo 2^32 */
#define EMBER_COMPLETION_WRITER_STRAY_ERRORS 0x12c4u

/* host_reporter.errors (ro): cumulative, modulo 2^32 */
#define EMBER_HOST_REPORTER_ERRORS 0x12c8u

/* host_reporter.credits (ro): cumulative, modulo 2^32 */
#define EMBER_HOST_REPORTER_CREDITS 0x12ccu

/* net_assembler.packets (ro): cumulative, modulo 2^32 */
#define EMBER_NET_ASSEMBLER_PACKETS 0x12d0u

/* net_assembler.beats (ro): cumulative, modulo 2^64: bits 31 to 0 */
#define EMBER_NET_ASSEMBLER_BEATS 0x12d4u

/* net_assembler.beats_high (ro): the same, bits 63 to 32 */
#define EMBER_NET_ASSEMBLER_BEATS_HIGH 0x12d8u

/* net_assembler.stall_output (ro): cumulative, modulo 2^32 */
#define EMBER_NET_ASSEMBLER_STALL_OUTPUT 0x12dcu

/* host_assembler.packets (ro): cumulative, modulo 2^32 */
#define EMBER_HOST_ASSEMBLER_PACKETS 0x12e0u

/* host_assembler.beats (ro): cumulative, modulo 2^64: bits 31 to 0 */
#define EMBER_HOST_ASSEMBLER_BEATS 0x12e4u

/* host_assembler.beats_high (ro): the same, bits 63 to 32 */
#define EMBER_HOST_ASSEMBLER_BEATS_HIGH 0x12e8u

/* host_assembler.stall_output (ro): cumulative, modulo 2^32 */
#define EMBER_HOST_ASSEMBLER_STALL_OUTPUT 0x12ecu

/* gpu_answers.asked (ro): cumulative, modulo 2^32 */
#define EMBER_GPU_ANSWERS_ASKED 0x12f0u

/* gpu_answers.answered (ro): cumulative, modulo 2^32 */
#define EMBER_GPU_ANSWERS_ANSWERED 0x12f4u

/* gpu_answers.stall_answers (ro): cumulative, modulo 2^32 */
#define EMBER_GPU_ANSWERS_STALL_ANSWERS 0x12f8u

/* dense_answers.asked (ro): cumulative, modulo 2^32 */
#define EMBER_DENSE_ANSWERS_ASKED 0x12fcu

/* dense_answers.answered (ro): cumulative, modulo 2^32 */
#define EMBER_DENSE_ANSWERS_ANSWERED 0x1300u

/* dense_answers.stall_answers (ro): cumulative, modulo 2^32 */
#define EMBER_DENSE_ANSWERS_STALL_ANSWERS 0x1304u

/* peer_answers.asked (ro): cumulative, modulo 2^32 */
#define EMBER_PEER_ANSWERS_ASKED 0x1308u

/* peer_answers.answered (ro): cumulative, modulo 2^32 */
#define EMBER_PEER_ANSWERS_ANSWERED 0x130cu

/* peer_answers.stall_answers (ro): cumulative, modulo 2^32 */
#define EMBER_PEER_ANSWERS_STALL_ANSWERS 0x1310u

/* A table descriptor: what lies in its words, written to EMBER_TABLE_WORD0 on.
   All 5 of them for each table, word 0 last. */
/* the table is there */
#define EMBER_DESCRIPTOR_VALID_WORD 0u
#define EMBER_DESCRIPTOR_VALID_SHIFT 0u
#define EMBER_DESCRIPTOR_VALID_MASK 0x1u
/* DescriptorKind */
#define EMBER_DESCRIPTOR_KIND_WORD 0u
#define EMBER_DESCRIPTOR_KIND_SHIFT 1u
#define EMBER_DESCRIPTOR_KIND_MASK 0x6u
/* first or only node that owns rows */
#define EMBER_DESCRIPTOR_OWNER_WORD 0u
#define EMBER_DESCRIPTOR_OWNER_SHIFT 8u
#define EMBER_DESCRIPTOR_OWNER_MASK 0xff00u
/* nodes that own rows, from owner on */
#define EMBER_DESCRIPTOR_OWNERS_WORD 0u
#define EMBER_DESCRIPTOR_OWNERS_SHIFT 16u
#define EMBER_DESCRIPTOR_OWNERS_MASK 0xff0000u
/* rows of the table, bits 31 to 0 */
#define EMBER_DESCRIPTOR_ROWS_LOW_WORD 1u
#define EMBER_DESCRIPTOR_ROWS_LOW_SHIFT 0u
#define EMBER_DESCRIPTOR_ROWS_LOW_MASK 0xffffffffu
/* rows of the table, bits 35 to 32 */
#define EMBER_DESCRIPTOR_ROWS_HIGH_WORD 2u
#define EMBER_DESCRIPTOR_ROWS_HIGH_SHIFT 0u
#define EMBER_DESCRIPTOR_ROWS_HIGH_MASK 0xfu
/* first lane of 16 values, where a table is split by columns (not executed) */
#define EMBER_DESCRIPTOR_COLUMN_FIRST_WORD 2u
#define EMBER_DESCRIPTOR_COLUMN_FIRST_SHIFT 16u
#define EMBER_DESCRIPTOR_COLUMN_FIRST_MASK 0xff0000u
/* lanes of 16 values, likewise */
#define EMBER_DESCRIPTOR_COLUMN_COUNT_WORD 2u
#define EMBER_DESCRIPTOR_COLUMN_COUNT_SHIFT 24u
#define EMBER_DESCRIPTOR_COLUMN_COUNT_MASK 0xff000000u
/* of the table in GPU memory, in bytes from where all tables are on, a multiple of 16; counts with register row_reads, bits 31 to 0 */
#define EMBER_DESCRIPTOR_BASE_0_WORD 3u
#define EMBER_DESCRIPTOR_BASE_0_SHIFT 0u
#define EMBER_DESCRIPTOR_BASE_0_MASK 0xffffffffu
/* of the table in GPU memory, in bytes from where all tables are on, a multiple of 16; counts with register row_reads, bits 63 to 32 */
#define EMBER_DESCRIPTOR_BASE_1_WORD 4u
#define EMBER_DESCRIPTOR_BASE_1_SHIFT 0u
#define EMBER_DESCRIPTOR_BASE_1_MASK 0xffffffffu

/* What a packet carries */
#define EMBER_OPCODE_LOOKUPS 0x1u
#define EMBER_OPCODE_VECTORS 0x2u
#define EMBER_OPCODE_PARTIALS 0x3u
#define EMBER_OPCODE_STEPS 0x4u
#define EMBER_OPCODE_LINK 0x5u
#define EMBER_OPCODE_PROBE 0x6u
#define EMBER_OPCODE_QUERIES 0x10u
#define EMBER_OPCODE_GPU_VECTORS 0x11u
#define EMBER_OPCODE_DENSE_VECTORS 0x12u
#define EMBER_OPCODE_GRADIENTS 0x13u
#define EMBER_OPCODE_RETURNED 0x14u
#define EMBER_OPCODE_STATES 0x15u
#define EMBER_OPCODE_WRITTEN 0x16u
#define EMBER_OPCODE_STEP_OPEN 0x17u
#define EMBER_OPCODE_FLUSHED 0x18u
#define EMBER_OPCODE_READ_DATA 0x19u
#define EMBER_OPCODE_LOOKUP_REQUESTS 0x20u
#define EMBER_OPCODE_POOLED 0x21u
#define EMBER_OPCODE_ERRORS 0x22u
#define EMBER_OPCODE_CREDIT 0x23u
#define EMBER_OPCODE_DENSE_REQUESTS 0x24u
#define EMBER_OPCODE_RESULTS 0x25u
#define EMBER_OPCODE_RESULT_PART 0x26u
#define EMBER_OPCODE_SPILLED 0x27u
#define EMBER_OPCODE_ROW_UPDATES 0x28u
#define EMBER_OPCODE_STATE_REQUESTS 0x29u
#define EMBER_OPCODE_STATE_UPDATES 0x2au
#define EMBER_OPCODE_STEP_REPORTS 0x2bu
#define EMBER_OPCODE_INDICES 0x2cu
#define EMBER_OPCODE_FLUSH 0x2du
#define EMBER_OPCODE_COMPLETION 0x2eu
#define EMBER_OPCODE_READ 0x2fu
#define EMBER_OPCODE_INDEX 0x30u
#define EMBER_OPCODE_READ_ROWS 0x31u

/* Why a message or a sample was refused */
#define EMBER_STATUS_OPCODE 0x1u
#define EMBER_STATUS_LENGTH 0x2u
#define EMBER_STATUS_TABLE 0x3u
#define EMBER_STATUS_ROW 0x4u
#define EMBER_STATUS_SAMPLE_SIZE 0x5u
#define EMBER_STATUS_TRUNCATED 0x6u
#define EMBER_STATUS_NO_SAMPLE 0x7u
#define EMBER_STATUS_CREDIT 0x8u
#define EMBER_STATUS_KIND 0x9u
#define EMBER_STATUS_STEP 0xau
#define EMBER_STATUS_RETURNED 0xbu
#define EMBER_STATUS_TIMEOUT 0xcu
#define EMBER_STATUS_PEER 0xdu

/* How the rows of a table are distributed over nodes */
#define EMBER_DESCRIPTOR_KIND_TABLE 0x0u
#define EMBER_DESCRIPTOR_KIND_ROW 0x1u
#define EMBER_DESCRIPTOR_KIND_COLUMN 0x2u
#define EMBER_DESCRIPTOR_KIND_REPLICATED 0x3u

/* Kind of a query record */
#define EMBER_RECORD_KIND_KEY 0x0u
#define EMBER_RECORD_KIND_KEY_END 0x1u
#define EMBER_RECORD_KIND_EMPTY 0x2u
#define EMBER_RECORD_KIND_SAMPLE 0x3u

/* How a sample's pooled vectors are processed, register interaction_mode */
#define EMBER_INTERACTION_MODE_OFF 0x0u
#define EMBER_INTERACTION_MODE_DOT 0x1u
#define EMBER_INTERACTION_MODE_CAT 0x2u

/* How rows are updated by the sums of their gradients */
#define EMBER_OPTIMIZER_MODE_SGD 0x0u
#define EMBER_OPTIMIZER_MODE_ROWWISE_ADAGRAD 0x1u

/* What a StepRecord says of its step, whose number is in the header */
#define EMBER_STEP_KIND_END 0x0u
#define EMBER_STEP_KIND_DONE 0x1u
#define EMBER_STEP_KIND_CREDIT 0x2u
#define EMBER_STEP_KIND_PASSED 0x3u

/* The two gradient reductions of a NIC */
#define EMBER_REDUCTION_LEVEL_LOCAL 0x0u
#define EMBER_REDUCTION_LEVEL_GLOBAL 0x1u

/* Replacement policies of the caches */
#define EMBER_CACHE_POLICY_LRU 0x0u

#define EMBER_IDENTITY 0x52424d45u /* what EMBER_MAGIC reads */

#endif /* EMBER_KAGGLE_REGISTERS_H */
